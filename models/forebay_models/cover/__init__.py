"""Takes every step of the quick graphs in the implementation itself."""
