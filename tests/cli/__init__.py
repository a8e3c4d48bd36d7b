"""Tests of the command line: verdicts, exit codes, what it prints where."""
