"""Twins of buffers that overwrite: exact with open leases, accounted for after a failure."""

from typing import get_args

import pytest
from forebay_models.outcome import Verdict
from forebay_models.targets import Target
from forebay_models.twins.account import Account, Drained, wrong_with
from forebay_models.twins.judge import Counts, judge
from forebay_models.twins.program import (
    DROP_LAST,
    SAMPLERS,
    Place,
    Program,
    Recipe,
    Save,
    Step,
    Way,
)
from forebay_models.twins.run import run_programs

from tests.twins.programs import (
    APPEND,
    BATCH,
    EPOCHS,
    FIFO,
    RELEASE,
    UNIFORM,
    extend,
    lease,
    sample,
)

OVERWRITING = {
    "replacement": UNIFORM,
    "epochs": EPOCHS,
    DROP_LAST: EPOCHS._replace(drop_last=True),
}
FIRST = (extend(5), BATCH, lease(3), extend(4), BATCH, lease(2), RELEASE)
MORE = (BATCH, sample(5), extend(2), lease(1), BATCH, APPEND, sample(3), BATCH, extend(5), BATCH)


@pytest.mark.parametrize("way", get_args(Way))
@pytest.mark.parametrize("prefetch", range(5))
@pytest.mark.parametrize("sampler", OVERWRITING)
def test_continuation_is_exact_even_with_open_leases(sampler: str, prefetch: int, way: Way) -> None:
    recipe = OVERWRITING[sampler]._replace(prefetch=prefetch)
    assert recipe.sampler == sampler
    save = Save(way, "tensor", used=way != "pickle", place="here")
    counts = Counts()
    judge(Program(recipe, (FIRST, MORE, MORE), (save, save)), "twins", counts)
    assert (counts.exact, counts.accounted, counts.steps) == (2, 0, 3 * len(MORE))
    assert counts.samplers == {sampler: 2}
    assert (counts.leased, counts.evicted, counts.overwriting) == (2, 2, 2)
    assert counts.queued == (2 if prefetch else 0)
    assert (counts.renewed > 0) == (sampler != "replacement")


@pytest.mark.parametrize("place", get_args(Place))
@pytest.mark.parametrize("sampler", OVERWRITING)
def test_in_every_place_and_shared(sampler: str, place: Place) -> None:
    recipe = OVERWRITING[sampler]._replace(prefetch=3, storage="shared", schema="odd")
    counts = Counts()
    judge(Program(recipe, (FIRST, MORE), (Save("pickle", "tensor", True, place),)), "x", counts)
    assert (counts.exact, counts.crossed, counts.elsewhere) == (1, 1, place != "here")


@pytest.mark.parametrize("sampler", OVERWRITING)
def test_records_are_accounted_for_after_a_batch_has_failed(sampler: str) -> None:
    recipe = OVERWRITING[sampler]._replace(prefetch=4, transform="picky", capacity=6)
    save = Save("state_dict", "tensor", False, "here")
    found = []
    for seed in range(8):
        counts = Counts()
        steps = (extend(4), extend(5), BATCH, sample(1), BATCH)
        judge(Program(recipe._replace(seed=seed), (steps, MORE), (save,)), "twins", counts)
        found.append((counts.exact, counts.accounted))
    assert {*found} == {(1, 0), (0, 1)}


def test_what_is_wrong_with_an_account() -> None:
    account = Account(
        written=frozenset(range(6)),
        given={},
        gone=frozenset({0, 1}),
        ahead=frozenset({1, 2}),
        left=frozenset({3}),
    )
    good = Drained({1: 1, 2: 2, 3: 1, 4: 1, 5: 9}, frozenset({3}))
    assert list(wrong_with(account, good, EPOCHS, "twin")) == []
    bad = Drained({0: 1, 2: 1, 3: 1, 4: 1}, frozenset({3, 4}))
    assert list(wrong_with(account, bad, EPOCHS, "twin")) == [
        "the twin begins with slots [3, 4] left and should do so with [3]",
        "record 5 was there when it was saved; the twin never gives it",
        "record 0 was not there when it was saved; the twin gives it",
    ]


def test_half_of_the_runs_overwrite_by_every_sampler() -> None:
    outcome = run_programs(Target.LOCAL, runs=40, seconds=None, seed_number=5)
    assert outcome.verdict is Verdict.HOLDS, outcome.detail
    assert all(sampler in outcome.detail for sampler in SAMPLERS)
    exact, overwriting = (outcome.figures[name] for name in ("exact twins", "overwriting"))
    assert isinstance(exact, int)
    assert isinstance(overwriting, int)
    assert 0 < overwriting < exact


def test_what_was_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay_models.twins.run.DEMANDING", 2)
    outcome = run_programs(Target.LOCAL, runs=2, seconds=None, seed_number=0)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "no exact twin sampled by" in outcome.detail


def test_recipes_say_what_they_are() -> None:
    recipes: tuple[Recipe, ...] = (FIFO, UNIFORM, OVERWRITING[DROP_LAST])
    assert [recipe.line().partition(",")[0] for recipe in recipes] == [
        "C=8 N=1 fifo B=1 D=2",
        "C=7 replacement B=2 D=0",
        "C=7 epochs",
    ]
    assert str(Step("extend", 3)) == "extend(3)"
