"""Tests of the campaign of snapshots."""
