"""Twin runs: a buffer and those restored from it go on in exactly the same way."""
