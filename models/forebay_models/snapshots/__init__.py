"""Snapshots of a buffer that is written and read at full speed meanwhile."""
