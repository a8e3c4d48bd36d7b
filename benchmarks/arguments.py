"""The command line that the benchmarks of several cases have in common."""

import argparse
from collections.abc import Collection


def case_parser(
    prog: str, description: str | None, cases: Collection[str], *, usual: str
) -> argparse.ArgumentParser:
    """Return a parser of cases and of how often each is measured; `usual` says how often if none
    is given."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"of {', '.join(cases)}; all when none is named"
    )
    parser.add_argument(
        "--repetitions", type=int, metavar="N", help=f"turns of each contender ({usual})"
    )
    return parser


def parsed(
    parser: argparse.ArgumentParser, argv: list[str] | None, cases: Collection[str]
) -> argparse.Namespace:
    """Read a command line, or end the program with what is wrong with it."""
    args = parser.parse_args(argv)
    args.cases = args.cases or list(cases)
    if unknown := [case for case in args.cases if case not in cases]:
        parser.error(f"unknown case {unknown[0]}; there are {', '.join(cases)}")
    if args.repetitions is not None and args.repetitions < 1:
        parser.error("--repetitions is at least 1")
    return args
