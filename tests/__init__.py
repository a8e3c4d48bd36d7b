"""Tests of every room, by purpose; helpers import as `tests.<folder>.<module>`."""
