"""Runs TLC and understands what it prints.

`java` finds the tools, `manifest` says which runs there are and how each must end, `runner` starts
them, `messages` and `values` read TLC's output, `trace` makes a readable table of a counterexample,
`edges` reads a printed state graph, `judge` compares a run with what the manifest expects.
"""
