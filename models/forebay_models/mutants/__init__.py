"""Faults on purpose: what the models and the campaign have to find, or they find nothing."""
