"""What stands between the specification and a buffer that is to behave like it."""
