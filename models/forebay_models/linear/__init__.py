"""Linearizability: histories of real concurrent runs, judged by the specification."""
