"""The examples run, lose nothing, and end cleanly however they end."""
