"""Compares what TLC found with what the manifest expects, and says so in one outcome.

Three things must not be mistaken for a pass: a run that TLC could not finish, a planted fault that
was found by another property than the one that should find it, and a model that holds but has
fewer states or reaches less than before.
"""

from math import gcd

from forebay_models.counterexample import Counterexample
from forebay_models.outcome import Figure, Outcome, Verdict
from forebay_models.runs.tlc import TlcRun
from forebay_models.tlc.manifest import Run
from forebay_models.tlc.messages import Report
from forebay_models.tlc.runner import Result
from forebay_models.tlc.trace import LabelsOf, trace_shown
from forebay_models.tlc.values import BadValue, Value, parse, unquote
from forebay_models.tokens import token_of

# TLC's exit codes and the kinds of violation that they go with.
_KINDS = {
    0: (None,),
    10: ("assumption",),
    11: ("deadlock",),
    12: ("invariant",),
    13: ("action", "temporal"),
}


def judge(
    run: Run,
    result: Result,
    *,
    bounds: str,
    show: bool = False,
    labels_of: LabelsOf | None = None,
) -> Outcome:
    """Return the outcome of a run.

    Args:
        run: what was run, and how it should end.
        result: how it ended.
        bounds: what it is limited to.
        show: asks for the counterexample of an expected failure.
        labels_of: tells what was printed of a step, if the run prints its steps.
    """
    report = result.report
    figures: dict[str, Figure] = {"states": report.distinct}
    if report.depth:
        figures["depth"] = report.depth

    def outcome(verdict: Verdict, detail: str, failure: Counterexample | None = None) -> Outcome:
        return Outcome(
            name=f"tlc {run.name}",
            verdict=verdict,
            bounds=bounds,
            figures=figures,
            seconds=result.seconds,
            detail=detail,
            counterexample=failure,
        )

    finished = report.succeeded == (result.exit_code == 0)
    consistent = report.violated in _KINDS.get(result.exit_code, ())
    if report.errors or not finished or not consistent:
        return outcome(Verdict.COULD_NOT_RUN, _trouble(run, result))

    def shown(what: str, token: str = "") -> tuple[str, Counterexample | None]:
        """Return a violation as text, and as a counterexample if TLC has printed one."""
        failure = trace_shown(
            report,
            name=f"tlc {run.name}",
            setting=bounds,
            what=[what],
            token=token,
            labels_of=labels_of,
        )
        return (what if failure is None else failure.as_text()), failure

    if report.violated is not None:
        name = _violated_name(run, report)
        figures["steps"] = max(len(report.trace) - 1, 0)
        as_expected = run.expect == report.violated and run.property in (None, name)
        what = _found(run, report, name)
        if as_expected:
            figures["found"] = name or report.violated
            return outcome(Verdict.HOLDS, *(shown(what) if show else ("",)))
        expected = "no violation" if run.expect == "holds" else f"{run.property or run.expect}"
        what = f"{what}; expected: {expected}"
        token = token_of(TlcRun(run.name))
        return outcome(Verdict.VIOLATED, *shown(what, token))

    if run.expect != "holds":
        what = f"the planted fault {run.fault}" if run.fault else "the expected violation"
        return outcome(
            Verdict.VIOLATED,
            f"{what} was not found: {run.property or run.expect} holds in {run.cfg}",
        )
    values = _values(result)
    reached = {str(value[1]) for value in values if value[0] == "WITNESS"}
    if run.witnesses:
        figures["witnesses"] = len(reached & set(run.witnesses))
    if run.mutual_wait is not None:
        figures["mutual waits"] = sum(value[0] == "MUTUAL" for value in values)
    complaints = _complaints(run, report, reached, values)
    return outcome(Verdict.VIOLATED if complaints else Verdict.HOLDS, "\n".join(complaints))


def _complaints(
    run: Run, report: Report, reached: set[str], values: list[tuple[Value, ...]]
) -> list[str]:
    """Return what differs from the manifest in a run without a violation."""
    complaints = [
        f"witness {name} was not reached: within these bounds the model cannot do what it is about"
        for name in run.witnesses
        if name not in reached
    ]
    for what, expected, got in (
        ("distinct states", run.distinct, report.distinct),
        ("depth", run.depth, report.depth),
    ):
        if expected is not None and expected != got:
            complaints.append(f"{what}: the manifest says {expected}, TLC found {got}")
    if run.mutual_wait is not None:
        found = {value[1:] for value in values if value[0] == "MUTUAL"}
        complaints += bound_complaints(run.mutual_wait, found)
    return complaints


def bound_complaints(capacity: int, found: set[tuple[Value, ...]]) -> list[str]:
    """Compare the (C, n, k) that end in a mutual wait with the bound n + k > C + gcd(n, k)."""
    sizes = range(1, capacity + 1)
    expected = {(capacity, n, k) for n in sizes for k in sizes if n + k > capacity + gcd(n, k)}
    return [
        f"no mutual wait with (C, n, k) = {case}, although n + k > C + gcd(n, k)"
        for case in sorted(expected - found)
    ] + [
        f"a mutual wait with (C, n, k) = {case}, beyond the bound n + k > C + gcd(n, k)"
        for case in sorted(found - expected, key=str)
    ]


def _values(result: Result) -> list[tuple[Value, ...]]:
    """Return the printed tuples, each once."""
    values = []
    for line in sorted(result.printed):
        try:
            value = parse(unquote(line) if line.startswith('"') else line)
        except BadValue:
            continue
        if isinstance(value, tuple) and value:
            values.append(value)
    return values


def _violated_name(run: Run, report: Report) -> str | None:
    """TLC does not name a temporal property; the manifest makes sure that there is only one."""
    return run.property if report.violated == "temporal" else report.property


def _found(run: Run, report: Report, name: str | None) -> str:
    kind = report.violated or ""
    if kind == "temporal" and run.expect != "temporal":
        return "a temporal property is violated"
    words = {"invariant": "invariant", "action": "step property", "temporal": "liveness property"}
    if kind in words:
        return f"{words[kind]} {name} is violated"
    return "deadlock: no step is possible" if kind == "deadlock" else f"assumption: {name}"


def _trouble(run: Run, result: Result) -> str:
    """Say why TLC could not check the model."""
    said = [*result.report.errors, *result.report.last_lines]
    return "\n".join([f"TLC ended with code {result.exit_code} on {run.cfg}:", *said])
