"""Confirms the contracts of the decision kernel over all paths, with CrossHair.

CrossHair may find a counterexample, confirm a condition, or give up. Giving up is silent unless
asked about, and a condition that it overlooked is not reported at all. So every `post:` line of the
file must have been confirmed by name; anything less is inconclusive.
"""

import ast
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from forebay_models.outcome import Outcome, Verdict
from forebay_models.progress import Observer, Quiet
from forebay_models.tlc.java import EXTRA

SECONDS_PER_CONDITION = 20

_MESSAGE = re.compile(r"(?P<file>.+?):(?P<line>\d+): (?P<severity>\w+): (?P<text>.*)")
_CONFIRMED = "Confirmed over all paths"


@dataclass(frozen=True)
class Condition:
    """One `post:` line: where it stands, of which function, what it says."""

    line: int
    function: str
    text: str


def kernel_file() -> Path:
    """Return the file of the kernel that the library imports."""
    spec = find_spec("forebay_spec.kernel")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def conditions(source: str) -> tuple[Condition, ...]:
    """Return every `post:` line in the docstrings of a module's functions."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef) or ast.get_docstring(node) is None:
            continue
        docstring = node.body[0]
        for offset, line in enumerate(
            source.splitlines()[docstring.lineno - 1 : docstring.end_lineno]
        ):
            if line.strip().startswith("post:"):
                text = line.strip().removeprefix("post:").strip()
                found.append(Condition(docstring.lineno + offset, node.name, text))
    return tuple(found)


def check_kernel(
    *,
    file: Path | None = None,
    seconds_per_condition: int = SECONDS_PER_CONDITION,
    observer: Observer | None = None,
) -> Outcome:
    """Run CrossHair on the kernel, or on another file with contracts, and return the outcome."""
    observer = observer or Quiet()
    target = file or kernel_file()
    wanted = conditions(target.read_text(encoding="utf-8"))
    started = time.monotonic()
    observer.begins("kernel")

    def outcome(verdict: Verdict, confirmed: int, detail: str) -> Outcome:
        result = Outcome(
            name="kernel",
            verdict=verdict,
            bounds="all paths, all inputs that the preconditions allow",
            figures={
                "functions": len({condition.function for condition in wanted}),
                "conditions": len(wanted),
                "confirmed": confirmed,
            },
            seconds=time.monotonic() - started,
            detail=detail,
        )
        observer.ends("kernel", result)
        return result

    if find_spec("crosshair") is None:
        return outcome(Verdict.COULD_NOT_RUN, 0, f"CrossHair is missing: {EXTRA} brings it")
    observer.says("kernel", f"{len(wanted)} conditions")
    command = [
        sys.executable, "-m", "crosshair", "check", str(target), "--analysis_kind=PEP316",
        "--report_all", "--per_condition_timeout", str(seconds_per_condition),
    ]  # fmt: skip
    run = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
    )
    if run.returncode not in (0, 1):
        said = (run.stderr or run.stdout).strip()
        return outcome(
            Verdict.COULD_NOT_RUN, 0, f"CrossHair ended with code {run.returncode}:\n{said}"
        )
    reports = parse_report(run.stdout)
    verdict, confirmed, detail = judge(target.name, wanted, reports)
    return outcome(verdict, confirmed, detail)


def parse_report(output: str) -> Mapping[int, tuple[str, str]]:
    """Return severity and text of CrossHair's message for each line; an error beats the others."""
    reports: dict[int, tuple[str, str]] = {}
    for line in output.splitlines():
        found = _MESSAGE.fullmatch(line)
        if found is None:
            continue
        number = int(found["line"])
        if reports.get(number, ("", ""))[0] != "error":
            reports[number] = found["severity"], found["text"]
    return reports


def judge(
    name: str, wanted: tuple[Condition, ...], reports: Mapping[int, tuple[str, str]]
) -> tuple[Verdict, int, str]:
    """Return the verdict, how many conditions were confirmed, and what to tell about the others."""
    confirmed = [
        condition
        for condition in wanted
        if reports.get(condition.line, ("", ""))[1].startswith(_CONFIRMED)
    ]
    broken = [
        f"{name}:{line}: {_condition_at(wanted, line)}{text}"
        for line, (severity, text) in sorted(reports.items())
        if severity == "error"
    ]
    if broken:
        return Verdict.VIOLATED, len(confirmed), "\n".join(broken)
    if not wanted:
        return Verdict.INCONCLUSIVE, 0, f"{name} has no post: line, so nothing was confirmed"
    open_ends = [
        f"{name}:{condition.line}: {condition.function}: not confirmed: {condition.text}"
        f" ({reports.get(condition.line, ('', 'CrossHair did not report it'))[1]})"
        for condition in wanted
        if condition not in confirmed
    ]
    if open_ends:
        return Verdict.INCONCLUSIVE, len(confirmed), "\n".join(open_ends)
    return Verdict.HOLDS, len(confirmed), ""


def _condition_at(wanted: tuple[Condition, ...], line: int) -> str:
    for condition in wanted:
        if condition.line == line:
            return f"{condition.function}: {condition.text}: "
    return ""
