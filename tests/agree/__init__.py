"""Tests of the comparison of state graphs."""
