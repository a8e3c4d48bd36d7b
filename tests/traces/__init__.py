"""Tests of traces: what is recorded, and that both judges accept the true and no other."""
