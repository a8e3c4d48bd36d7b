"""Tests of linearizability: histories, the search, recorded runs, planted faults."""
