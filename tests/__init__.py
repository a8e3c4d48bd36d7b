"""Tests of every room, in folders by purpose; shared helpers import as `tests.<folder>.<module>`."""
