"""Judges traces of real runs: each event has to be a step of the models."""
