"""Runs real threads under every order of their steps that a strategy asks for."""
