"""Explores the Python specification exhaustively within bounds, without any tool from outside."""
