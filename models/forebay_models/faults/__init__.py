"""Processes of a shared buffer are killed at every labelled point and at random; it has to heal."""
