"""Tests of the campaign of twin runs."""
