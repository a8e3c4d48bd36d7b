"""The campaign that kills processes of a shared buffer."""
