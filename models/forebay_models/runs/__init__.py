"""The runs that a replay token can be about, one module for each level."""
