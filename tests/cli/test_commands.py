"""The commands end with the exit code of their verdict and print where they should."""

import builtins
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from forebay_models import check_cli, cli
from forebay_models.outcome import Outcome, Verdict
from forebay_models.parts import Part, attempted
from forebay_models.progress import Observer

TOYS = Path(__file__).parents[1] / "tlc" / "data"


def made(name: str, verdict: Verdict) -> Outcome:
    return Outcome(name=name, verdict=verdict, bounds="C=2", figures={"states": 3}, seconds=0.1)


def plant(
    monkeypatch: pytest.MonkeyPatch, verdicts: Mapping[str, Verdict], seen: list[str]
) -> None:
    """Replace each check by one with a given verdict that notes that it was run, here."""

    def planted(name: str) -> object:
        def check(observer: Observer, *rest: object, **options: object) -> Sequence[Outcome]:
            seen.append(name)
            return [made(name, verdicts.get(name, Verdict.HOLDS))]

        return check

    def run_here(parts: Sequence[Part], observer: Observer) -> list[Outcome]:
        return [outcome for part in parts for outcome in attempted(part, observer)]

    for name in ("kernel", "explore", "tlc_and_agree"):
        monkeypatch.setattr(check_cli, f"_{name}", planted(name))
    monkeypatch.setattr(check_cli, "run_parts", run_here)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_command_ends_with_the_code_of_its_verdict(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, {"kernel": verdict}, [])
    assert cli.main(["check", "kernel"]) == int(verdict)


def test_all_runs_everything_and_ends_with_the_worst(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []
    verdicts = {"explore": Verdict.INCONCLUSIVE, "tlc_and_agree": Verdict.COULD_NOT_RUN}
    plant(monkeypatch, verdicts, seen)
    assert cli.main(["check", "all", "--json"]) == 2
    assert seen == ["kernel", "explore", "tlc_and_agree"]
    document = json.loads(capsys.readouterr().out)
    assert document["command"] == "check all"
    assert [entry["verdict"] for entry in document["outcomes"]] == [
        "holds",
        "inconclusive",
        "could_not_run",
    ]


def test_help_teaches_by_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    assert "forebay verify" in capsys.readouterr().out
    for command in ("kernel", "tlc", "explore", "agree", "all"):
        assert cli.main(["check", command, "--help"]) == 0
        shown = capsys.readouterr().out
        assert "Example" in shown
        assert f"forebay check {command}" in shown
    for command in ("replay", "report"):
        assert cli.main([command, "--help"]) == 0
        shown = capsys.readouterr().out
        assert "Example" in shown
        assert f"forebay {command} " in shown


def test_a_wrong_option_could_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "all", "--tier", "huge"]) == 2
    assert "huge" in capsys.readouterr().err


def test_an_error_of_the_program_is_no_violation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(observer: Observer, seconds: int | None) -> list[Outcome]:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(check_cli, "_kernel", fails)
    assert cli.main(["check", "kernel"]) == 2
    captured = capsys.readouterr()
    assert "planted" in captured.err
    assert "an error in forebay itself" in captured.err
    assert captured.out == ""


def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = builtins.__import__

    def without_typer(name: str, *rest: object) -> ModuleType:
        if name == "typer":
            raise ModuleNotFoundError("No module named 'typer'", name="typer")
        return honest(name, *rest)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(builtins, "__import__", without_typer)
    assert cli.main(["check", "kernel"]) == 2
    message = capsys.readouterr().err
    assert "'typer' is missing" in message
    assert "forebay[check]" in message
    assert "Traceback" not in message


@pytest.fixture
def handlers() -> Iterator[tuple[object, object]]:
    """Let the usual handlers stand, and tell them; the tests' own process keeps what it had."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        yield signal.default_int_handler, signal.SIG_DFL
    finally:
        for number, earlier in zip(numbers, before, strict=True):
            signal.signal(number, earlier)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, cli.INTERRUPTED), (signal.SIGTERM, cli.TERMINATED)]
)
@pytest.mark.parametrize("instead", [ImportError("swallowed"), SystemExit(0), None], ids=repr)
def test_an_interrupt_counts_whatever_a_module_makes_of_it(
    number: signal.Signals,
    code: int,
    instead: BaseException | None,
    handlers: tuple[object, object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def swallows() -> Callable[..., None]:
        with suppress(KeyboardInterrupt, SystemExit):
            signal.raise_signal(number)
            pytest.fail("the signal raised nothing")
        if instead is not None:
            raise instead
        return lambda **options: None

    monkeypatch.setattr(cli, "build", swallows)
    assert cli.main([]) == code
    assert "Traceback" not in capsys.readouterr().err
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


def test_an_interrupt_that_is_ignored_stays_ignored(
    handlers: tuple[object, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def interrupted() -> Callable[..., None]:
        signal.raise_signal(signal.SIGINT)
        return lambda **options: None

    monkeypatch.setattr(cli, "build", interrupted)
    assert cli.main([]) == 0
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_unknown_names_are_told_with_those_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command, complaint in (
        ("tlc", "no run is called 'nonsense'; there are: door, "),
        ("agree", "no graph is called 'nonsense'; there are: writers, "),
        ("explore", "nothing is called nonsense; there are: writers, "),
    ):
        models = [] if command == "explore" else ["--models", str(TOYS)]
        assert cli.main(["check", command, "nonsense", *models]) == 2
        assert complaint in capsys.readouterr().out


def test_a_graph_that_no_run_prints_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "agree", "writers", "--models", str(TOYS)]) == 2
    assert "prints graph writers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, cli.INTERRUPTED), (signal.SIGTERM, cli.TERMINATED)]
)
def test_an_interrupt_kills_what_was_started(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    """A pretended Java tells its process id through a pipe and then runs for ever."""
    os.mkfifo(tmp_path / "told")
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho $$ > {tmp_path / 'told'}\nexec sleep 1000\n")
    java.chmod(0o755)
    command = [sys.executable, "-m", "forebay_models.cli", "check", "tlc", "door"]
    process = subprocess.Popen(
        [*command, "--models", str(TOYS)],
        env={**os.environ, "JAVA_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        started = int((tmp_path / "told").read_text())
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code
    assert out == ""
    assert "Traceback" not in err
    with pytest.raises(ProcessLookupError):
        os.kill(started, 0)


def test_the_program_is_installed_under_its_name() -> None:
    program = Path(sys.executable).with_name("forebay")
    shown = subprocess.run([program, "check", "--help"], capture_output=True, text=True, check=True)
    assert "Exit codes" in shown.stdout
