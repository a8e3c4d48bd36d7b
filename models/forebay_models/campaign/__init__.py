"""Drives a buffer through random steps of the specification and compares it after each of them."""
