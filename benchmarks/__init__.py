"""Honest measurements of the library beside its peers: `python -m benchmarks`."""
