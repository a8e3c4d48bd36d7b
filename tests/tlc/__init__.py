"""Tests of what runs TLC and reads its output; `data` holds toy models and outputs of theirs."""
