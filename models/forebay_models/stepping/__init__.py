"""Moves real threads from one labelled point of the library to the next, one at a time."""
