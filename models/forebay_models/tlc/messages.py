"""Reads what TLC prints with `-tool`: framed messages with codes, and printed values in between.

Only this file knows the numbers. Printed values may stand inside a frame, since TLC's worker and
its reporter write at the same time, though always whole lines; so a line that looks like a printed
tuple is one, wherever it stands.
"""

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Final

_START = re.compile(r"@!@!@STARTMSG (\d+):(\d) @!@!@")
_END = re.compile(r"@!@!@ENDMSG \d+ @!@!@")
_STATE = re.compile(r"(\d+): (?:<(.+?)(?: line \d+.*)?>|(Stuttering))\s*$")
_BACK = re.compile(r"(\d+): Back to state(?: (\d+))?(?:: <(\w+))?")
_VARIABLE = re.compile(r"(?:/\\ )?(\w+) = (.*)", re.DOTALL)
_VIOLATED = re.compile(r"(?:Invariant|Action property|Property) (\S+) is violated")
_COUNTS = re.compile(r"([\d,]+) states generated[^,]*(?:\([^)]*\))?, ([\d,]+) distinct states")

_INVARIANT: Final = (2110, 2107)  # later, and by the initial state
_ACTION: Final = (2112, 2108)
_DEADLOCK: Final = 2114
_TEMPORAL: Final = 2116
_ASSUMPTION: Final = 2104
_SUCCESS: Final = 2193
_TOTALS: Final = 2199
_PROGRESS: Final = 2200
_DEPTH: Final = 2194
_TRACE: Final = (2217, 2218)
_BACK_TO: Final = 2122
_BEHAVIOUR_FOLLOWS: Final = (2121, 2264)
_ERROR_SEVERITIES: Final = ("1", "2")
_NOISE = ("Parsing file ", "Semantic processing of module ", "TLC2 Version")


@dataclass(frozen=True)
class TraceState:
    """One state of a counterexample: its number from 1, the action before it, its variables."""

    number: int
    action: str
    variables: dict[str, str]


@dataclass
class Report:
    """What TLC has said so far. `violated` is the kind of the violated property, as in a manifest;
    `property` is its name where TLC tells it. `loop` is the number of the state that the last one
    of a temporal counterexample goes back to, and `loop_action` the action that leads there; a
    trace that stutters goes back to its last state.
    """

    succeeded: bool = False
    violated: str | None = None
    property: str | None = None
    trace: list[TraceState] = field(default_factory=list)
    loop: int | None = None
    loop_action: str | None = None
    generated: int = 0
    distinct: int = 0
    depth: int = 0
    errors: list[str] = field(default_factory=list)
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=20))


class MessageReader:
    """Takes the output line by line and keeps a `Report` up to date."""

    def __init__(self) -> None:
        self.report = Report()
        self._frame: tuple[int, str] | None = None
        self._body: list[str] = []

    def feed(self, line: str) -> str | None:
        """Take one line without its end. Returns the line if it is a printed value, else None."""
        if line.startswith(('<<"', '"<<')):
            return line
        if started := _START.fullmatch(line):
            self._frame = int(started[1]), started[2]
            self._body = []
        elif _END.fullmatch(line):
            if self._frame is not None:
                self._message(*self._frame, "\n".join(self._body).strip())
            self._frame = None
        elif self._frame is not None:
            self._body.append(line)
        elif line.strip() and not line.startswith(_NOISE):
            self.report.last_lines.append(line)
        return None

    def _message(self, code: int, severity: str, text: str) -> None:
        report = self.report
        if code in _INVARIANT or code in _ACTION:
            report.violated = "invariant" if code in _INVARIANT else "action"
            named = _VIOLATED.search(text)
            report.property = named[1] if named else None
            if "initial state" in text:
                _, _, state = text.partition("\n")
                report.trace.append(TraceState(1, "Initial predicate", _variables(state)))
        elif code == _DEADLOCK:
            report.violated = "deadlock"
        elif code == _TEMPORAL:
            report.violated = "temporal"
        elif code == _ASSUMPTION:
            report.violated = "assumption"
            report.property = text
        elif code == _SUCCESS:
            report.succeeded = True
        elif code in (_TOTALS, _PROGRESS):
            if counts := _COUNTS.search(text):
                report.generated = int(counts[1].replace(",", ""))
                report.distinct = int(counts[2].replace(",", ""))
        elif code == _DEPTH:
            report.depth = int(re.findall(r"\d+", text)[-1])
        elif code in _TRACE or code == _BACK_TO:
            self._trace(text)
        elif severity in _ERROR_SEVERITIES and code not in _BEHAVIOUR_FOLLOWS:
            report.errors.append(text)

    def _trace(self, text: str) -> None:
        head, _, body = text.partition("\n")
        if back := _BACK.match(head):
            self.report.loop = int(back[2] or back[1])
            self.report.loop_action = back[3]
        elif state := _STATE.match(head):
            if state[3]:
                self.report.loop = int(state[1]) - 1
            else:
                self.report.trace.append(TraceState(int(state[1]), state[2], _variables(body)))


def _variables(body: str) -> dict[str, str]:
    """Return the variables of a printed state; a long value goes on in indented lines."""
    entries: list[str] = []
    for line in body.splitlines():
        if line.startswith("/\\ ") or (not entries and line.strip()):
            entries.append(line)
        elif line.strip():
            entries[-1] += " " + line.strip()
    found = (_VARIABLE.fullmatch(entry) for entry in entries)
    return {variable[1]: variable[2] for variable in found if variable}
