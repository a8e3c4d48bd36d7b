"""Programs are read from text, and what is no program is refused with a reason."""

import pytest
from forebay_models.scheduling.scenario import Op, Scenario, op_of
from forebay_models.scheduling.scenarios import FULL, QUICK
from forebay_spec.bounds import Request


@pytest.mark.parametrize(
    ("text", "op"),
    [
        ("extend 2", Op("extend", (2,))),
        ("extend 1 timed", Op("extend", (1,), "", "timed")),
        ("sample 2 1 raises", Op("sample", (2, 1), "", "raises")),
        ("lease 1", Op("lease", (1, 1))),
        ("set t1", Op("set", (), "t1")),
        ("shutdown draining", Op("shutdown", (), "draining")),
        ("commit", Op("commit")),
    ],
)
def test_a_call_is_read_and_written(text: str, op: Op) -> None:
    assert op_of(text) == op
    assert op_of(str(op)) == op


@pytest.mark.parametrize(
    "text", ["write 1", "extend", "extend 1 2", "sample", "set", "commit 1", "extend 1 slowly"]
)
def test_what_is_no_call_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=text.split()[0]):
        op_of(text)


def test_the_bounds_have_everything_that_the_programs_do() -> None:
    scenario = Scenario(
        name="some",
        capacity=3,
        programs=(("p1", "extend 1; extend 3"), ("x1", "extend 2; lease 2 1; commit")),
        token_of=(("p1", "t1"),),
    )
    bounds = scenario.bounds
    assert bounds.producers == ("p1", "x1")
    assert bounds.readers == ("x1",)
    assert bounds.write_sizes == (1, 2, 3)
    assert bounds.requests == (Request("lease", 2, 1),)
    assert bounds.tokens == ("t1",)


def test_a_token_that_nobody_has_is_refused() -> None:
    with pytest.raises(ValueError, match="nobody has the token t2"):
        Scenario(name="some", capacity=1, programs=(("x1", "set t2"),), token_of=(("p1", "t2"),))


def test_the_full_tier_has_all_of_the_quick_one_and_more() -> None:
    assert set(QUICK) < set(FULL)
    assert all(FULL[name].bound > plan.bound for name, plan in QUICK.items())
