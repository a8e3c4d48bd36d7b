"""Finds the TLA+ models and reads `manifest.toml`: which runs there are and how each must end.

A run that is expected to fail is as much a check as one that must hold: it shows that the property
can fail at all. So every run states its verdict, and a run that holds states its number of states,
its depth and the witnesses that it reaches; a model that shrinks unnoticed is then noticed.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

EXPECTATIONS = ("holds", "invariant", "action", "temporal", "deadlock")
TIERS = ("quick", "full")


class ManifestError(Exception):
    """The manifest or a file that it names is missing or wrong; the message says which and how."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of TLC.

    `expect` is "holds" or the kind of property that must be violated, `property` its name.
    `distinct` and `depth` are the expected counts of a run that holds. `graph` is the name of the
    quick graph whose edges the run prints, `fault` the id of the fault that is planted. A run with
    `mutual_wait` must print exactly the sizes (n, k) for which a mutual wait is reachable at that
    capacity.
    """

    name: str
    module: str
    cfg: str
    tier: str = "quick"
    expect: str = "holds"
    property: str | None = None
    distinct: int | None = None
    depth: int | None = None
    witnesses: tuple[str, ...] = ()
    graph: str | None = None
    fault: str | None = None
    mutual_wait: int | None = None


def find_models(given: Path | None = None) -> Path:
    """Return the directory of the TLA+ models: the given one, the installed or the checked-out.

    An installed wheel carries it inside this package; in a source checkout it stands beside the
    source roots.
    """
    if given is not None:
        candidates = [given]
    else:
        package = Path(__file__).resolve().parents[1]
        candidates = [package / "tla", package.parents[1] / "tla"]
    for directory in candidates:
        if (directory / "manifest.toml").is_file():
            return directory
    tried = " or ".join(str(directory / "manifest.toml") for directory in candidates)
    raise ManifestError(f"there is no {tried}")


def load_runs(models: Path) -> tuple[Run, ...]:
    """Return the runs of `manifest.toml` in that directory, checked against the files there."""
    source = models / "manifest.toml"
    try:
        document = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ManifestError(f"{source}: {error}") from error
    entries = document.get("run")
    if not isinstance(entries, list) or not entries:
        raise ManifestError(f"{source}: expected at least one [[run]]")
    runs = tuple(_run(entry, source) for entry in entries)
    names = [run.name for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise ManifestError(f"{source}: two runs are called {name!r}")
    return runs


def select(runs: Sequence[Run], *, tier: str, names: Sequence[str] = ()) -> tuple[Run, ...]:
    """Return the named runs, or without names those of the tier; the full tier includes the quick.

    Raises:
        ManifestError: A name is unknown, with the names that there are.
    """
    if names:
        known = {run.name: run for run in runs}
        for name in names:
            if name not in known:
                raise ManifestError(f"no run is called {name!r}; there are: {', '.join(known)}")
        return tuple(known[name] for name in names)
    return tuple(run for run in runs if tier == "full" or run.tier == "quick")


def read_constants(cfg: Path) -> Mapping[str, str]:
    """Return the constants that a configuration file assigns with `=`, as they are written."""
    text = re.sub(r"\\\*.*", "", cfg.read_text(encoding="utf-8"))
    return {name: value.strip() for name, value in re.findall(r"(\w+)\s*=\s*([^\n]+)", text)}


def read_properties(cfg: Path) -> tuple[str, ...]:
    """Return the names after PROPERTY or PROPERTIES in a configuration file."""
    text = re.sub(r"\\\*.*", "", cfg.read_text(encoding="utf-8"))
    sections = re.findall(r"\bPROPERT(?:Y|IES)\b((?:\s+(?![A-Z_]+\b(?:\s|$))\w+)+)", text)
    return tuple(name for section in sections for name in section.split())


def bounds_of(run: Run, models: Path) -> str:
    """Return in one line what a run is limited to, from its configuration file."""
    short = {"Capacity": "C", "UsesPerRecord": "N", "WriteSizes": "sizes"}
    parts = []
    for name, value in read_constants(models / run.cfg).items():
        plain = value.replace('"', "").replace(" ", "")
        if name == "Order":
            parts.append(plain)
        elif plain != "{}":
            parts.append(f"{short.get(name, name.lower())}={plain.strip('{}')}")
    return " ".join(parts) or run.cfg


def _run(entry: Mapping[str, object], source: Path) -> Run:
    """Return one checked run from its table."""
    name = entry.get("name")
    if not isinstance(name, str):
        raise ManifestError(f"{source}: a [[run]] has no name")

    def wrong(what: str) -> ManifestError:
        return ManifestError(f"{source}: run {name!r}: {what}")

    kinds = {field.name: field.type for field in fields(Run)}
    for key, value in entry.items():
        if key not in kinds:
            raise wrong(f"unknown key {key!r}; the keys are {', '.join(kinds)}")
        kind = kinds[key]
        if kind == tuple[str, ...]:
            fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        elif kind in (str, str | None):
            fits = isinstance(value, str)
        else:
            fits = isinstance(value, int) and not isinstance(value, bool)
        if not fits:
            raise wrong(f"{key} is {value!r}, of the wrong type")
    for key in ("module", "cfg"):
        if key not in entry:
            raise wrong(f"{key} is missing")

    values = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    run = Run(**values)  # type: ignore[arg-type]  # each value was compared with its field above
    if run.tier not in TIERS:
        raise wrong(f"tier is {run.tier!r}, expected one of {', '.join(TIERS)}")
    if run.expect not in EXPECTATIONS:
        raise wrong(f"expect is {run.expect!r}, expected one of {', '.join(EXPECTATIONS)}")
    if run.property is None and run.expect in ("invariant", "action", "temporal"):
        raise wrong(f"it expects a violated {run.expect} property but does not name it")
    for file in (f"{run.module}.tla", run.cfg):
        if not (source.parent / file).is_file():
            raise wrong(f"there is no {source.parent / file}")
    if run.expect == "temporal" and read_properties(source.parent / run.cfg) != (run.property,):
        # TLC does not say which temporal property was violated.
        raise wrong(f"{run.cfg} must have {run.property} as its only PROPERTY")
    return run
