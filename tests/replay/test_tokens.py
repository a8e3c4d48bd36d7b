"""A token holds a whole run; one that is not whole, or not of here, says what is the matter."""

import base64
import hashlib
import json
import zlib
from dataclasses import dataclass
from typing import ClassVar

import pytest
from forebay_models.adapters.adapter import MANNERS, USUAL
from forebay_models.adapters.records import STORAGES
from forebay_models.campaign.replay import Move
from forebay_models.campaign.settings import Setting
from forebay_models.campaign.settings import bounds_of as bounds_of_scope
from forebay_models.documents import Json
from forebay_models.outcome import Outcome, Verdict
from forebay_models.runs.spec import SpecRun
from forebay_models.runs.tlc import TlcRun
from forebay_models.runs.walk import WalkRun
from forebay_models.targets import LOCAL
from forebay_models.tokens import LARGEST, LEVELS, Token, TokenError, read_token, token_of
from forebay_spec.actions import Label
from forebay_spec.bounds import FEATURES, FULL, QUICK, Bounds, ReaderKind, Request
from forebay_spec.kernel import Closing
from forebay_spec.properties import INVARIANTS, LIVENESS, STEPS
from hypothesis import given
from hypothesis import strategies as st

from tests.replay.walks import CASES

NAMES = st.text(min_size=1, max_size=4)


@st.composite
def some_bounds(draw: st.DrawFn) -> Bounds:
    """Draw any bounds that are possible, or some that the checks use."""
    known = st.sampled_from([*QUICK.values(), *FULL.values(), *bounds_of_scope(LOCAL)])
    if draw(st.booleans()):
        return draw(known)
    capacity = draw(st.integers(1, 70))
    sizes = st.integers(1, capacity)
    pairs = st.tuples(sizes, sizes).map(lambda pair: (max(pair), min(pair)))
    kinds: st.SearchStrategy[ReaderKind] = st.sampled_from(("plain", "lease"))
    return Bounds(
        name=draw(NAMES),
        capacity=capacity,
        uses=draw(st.integers(1, 5)),
        order=draw(st.sampled_from(("fifo", "random"))),
        producers=tuple(draw(st.lists(NAMES, max_size=3))),
        readers=tuple(draw(st.lists(NAMES, max_size=3))),
        write_sizes=tuple(draw(st.lists(sizes, max_size=3))),
        requests=tuple(
            Request(kind, *pair)
            for kind, pair in draw(st.lists(st.tuples(kinds, pairs), max_size=3))
        ),
        token_of=tuple(draw(st.lists(st.tuples(NAMES, NAMES), max_size=2))),
        features=draw(st.frozensets(st.sampled_from(sorted(FEATURES)))),
        closings=tuple(draw(st.lists(st.sampled_from(list(Closing)), max_size=3))),
    )


def labels(bounds: Bounds) -> st.SearchStrategy[Label]:
    """Draw any steps that may happen within bounds."""
    holds = st.builds(
        Label,
        st.sampled_from(("Ready", "Fail", "Deliver", "Return")),
        st.tuples(st.integers(0, 99)),
    )
    waits = ("Admit", "Draw", "Publish", "Abandon", "Expire", "Cancel", "Refuse")
    others = [
        Label("Empty"),
        *(Label(name, (actor,)) for name in waits for actor in bounds.actors),
        *(Label("Arrive", (p, n)) for p in bounds.producers for n in bounds.write_sizes),
        *(Label("Ask", (c, *request)) for c in bounds.readers for request in bounds.requests),
        *(Label("SetCancel", (token,)) for token in bounds.tokens),
        *(Label("Close", (mode.name.lower(),)) for mode in bounds.closings),
    ]
    return st.one_of(holds, st.sampled_from(others))


@st.composite
def some_walks(draw: st.DrawFn) -> WalkRun:
    """Draw a walk within some bounds, in all manners that its steps have."""
    bounds = draw(some_bounds())
    setting = Setting(bounds, draw(st.sampled_from(STORAGES)), draw(st.integers(0, 2**63)))
    moves = labels(bounds).flatmap(
        lambda label: st.sampled_from((USUAL, *MANNERS.get(label.name, ()))).map(
            lambda manner: Move(label, manner)
        )
    )
    return WalkRun(setting, tuple(draw(st.lists(moves, max_size=60))))


@st.composite
def some_paths(draw: st.DrawFn) -> SpecRun:
    """Draw a path of the specification within some bounds."""
    bounds = draw(some_bounds())
    steps = draw(st.lists(labels(bounds), max_size=60))
    broken = draw(st.sampled_from([*INVARIANTS, *STEPS, *LIVENESS]))
    return SpecRun(bounds, tuple(steps), broken)


RUNS = st.one_of(some_walks(), some_paths(), st.builds(TlcRun, NAMES))
TOKEN = token_of(CASES[0].run, fault="lost_wakeup")


@given(RUNS, st.one_of(st.just(""), NAMES))
def test_a_run_comes_back_from_its_token_whole(run: WalkRun | SpecRun | TlcRun, fault: str) -> None:
    token = token_of(run, fault=fault)
    found = read_token(f"  {token}\n")
    assert found == Token(run, fault)
    if not isinstance(run, TlcRun):
        # Bounds are equal if their names are; here every field has to be.
        before, after = bounds_of(run), bounds_of(found.run)
        assert vars(after).items() >= {key: vars(before)[key] for key in FIELDS}.items()


FIELDS = tuple(Bounds.__dataclass_fields__)


def bounds_of(run: object) -> Bounds:
    """Return the bounds of a run that has some."""
    if isinstance(run, WalkRun):
        return run.setting.bounds
    assert isinstance(run, SpecRun)
    return run.bounds


def test_equal_runs_have_equal_tokens_and_others_do_not() -> None:
    tokens = [token_of(case.run, fault=case.fault) for case in CASES]
    assert tokens == [token_of(case.run, fault=case.fault) for case in CASES]
    assert len({*tokens, token_of(CASES[0].run)}) == len(CASES) + 1


@given(st.data())
def test_a_letter_that_was_changed_on_the_way_is_noticed(data: st.DataObject) -> None:
    place = data.draw(st.integers(len("forebay1."), len(TOKEN) - 1))
    letters = "0123456789abcdef" if TOKEN.rindex(".") < place else "abcABC012-_"
    letter = data.draw(st.sampled_from(letters).filter(lambda it: it != TOKEN[place]))
    with pytest.raises(TokenError, match=r"damaged|not a replay token"):
        read_token(TOKEN[:place] + letter + TOKEN[place + 1 :])


def test_a_token_that_was_cut_is_noticed() -> None:
    for length in range(len(TOKEN)):
        with pytest.raises(TokenError, match=r"damaged|not a replay token"):
            read_token(TOKEN[:length])


@pytest.mark.parametrize("text", ["", "forebay", "hello world", "forebay1.a b.0", "forebay1.ä.0"])
def test_another_text_is_no_token(text: str) -> None:
    with pytest.raises(TokenError, match="not a replay token: one reads forebay1"):
        read_token(text)


def test_a_newer_version_is_told_from_damage() -> None:
    with pytest.raises(TokenError, match="of version 7, and this forebay knows versions up to 1"):
        read_token("forebay7.whatever.0")


def packed(content: Json, *, text: bytes | None = None, cut: int = 0) -> str:
    """Return a token with a right checksum around any content."""
    plain = json.dumps(content).encode() if text is None else text
    pressed = zlib.compress(plain)
    body = base64.urlsafe_b64encode(pressed[: len(pressed) - cut]).decode().rstrip("=")
    whole = f"forebay1.{body}"
    return f"{whole}.{hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def walk_with(**changes: Json) -> Json:
    return {"level": "walk", "run": {**CASES[0].run.as_json(), **changes}}


@pytest.mark.parametrize(
    ("token", "complaint"),
    [
        (packed({"level": "dream", "run": {}}), "the level 'dream' is unknown; there are: walk, "),
        (packed([]), "token: expected an object, got a list"),
        (packed({"level": "tlc"}), "token: 'run' is missing"),
        (packed({"level": "tlc", "run": {"name": 3}}), "'name' should be a text"),
        (packed({"level": "tlc", "run": {"name": "x"}, "more": 1}), "nothing is known of more"),
        (packed(walk_with(storage="disk")), "'disk' is none of tensor, list"),
        (packed(walk_with(moves=[[["Fly", "p1"], ""]])), "no action 'Fly'"),
        (packed(walk_with(moves=[[["Empty"], "twice"]])), "Empty cannot happen in the manner"),
        (packed(walk_with(moves=[[["Empty"]]])), "move: expected a list of 2"),
        (packed(walk_with(bounds={})), "bounds: 'name' is missing"),
        (packed(None, text=b"{no json"), "cannot read"),
        (packed(None, text=b"\xff\xfe"), "cannot read"),
        (packed(walk_with(), cut=9), "cut short or holds more than"),
        (packed(None, text=b"[" * (LARGEST + 1)), "cut short or holds more than"),
    ],
)
def test_a_token_that_says_something_else_is_refused(token: str, complaint: str) -> None:
    with pytest.raises(TokenError, match=complaint):
        read_token(token)


def test_impossible_bounds_are_refused() -> None:
    bounds = CASES[0].run.as_json()["bounds"]
    assert isinstance(bounds, dict)
    changes: tuple[tuple[dict[str, Json], str], ...] = (
        ({"capacity": 0}, "impossible bounds: small: capacity and uses are at least 1"),
        ({"order": "lifo"}, "order: 'lifo' is none of fifo, random"),
        ({"closings": ["AJAR"]}, "closing: 'AJAR' is none of OPEN"),
        ({"requests": [["loan", 1, 1]]}, "request: 'loan' is none of plain, lease"),
        ({"write_sizes": [True]}, "write size: expected a whole number, got true or false"),
    )
    for change, complaint in changes:
        with pytest.raises(TokenError, match=complaint):
            read_token(packed(walk_with(bounds={**bounds, **change})))


STEPS_THAT_NO_STATE_HAS: tuple[list[Json], ...] = (
    ["Arrive", "p1"],
    ["Arrive", 1, "x"],
    ["Arrive", "p1", 9],
    ["Arrive", "c1", 1],
    ["Publish", "nobody"],
    ["Expire"],
    ["Deliver"],
    ["Deliver", "x"],
    ["Deliver", -1],
    ["Ask", "c1", "plain", 1],
    ["Ask", "c1", "foo", 1, 1],
    ["SetCancel", "t9"],
    ["Close"],
    ["Close", "zzz"],
    ["Empty", 1],
)


@pytest.mark.parametrize("step", STEPS_THAT_NO_STATE_HAS, ids=str)
def test_a_step_with_arguments_that_its_action_cannot_have_is_refused(step: list[Json]) -> None:
    bounds = CASES[0].run.as_json()["bounds"]
    path: Json = {"bounds": bounds, "steps": [step], "property": "TypeOK"}
    for content in (walk_with(moves=[[step, USUAL]]), {"level": "spec", "run": path}):
        with pytest.raises(TokenError, match=f"step: nothing like {step[0]}.* within the bounds"):
            read_token(packed(content))


@pytest.mark.parametrize("slots", ["0 0", "2", "1 9", "1" * 5000])
def test_a_draw_of_slots_that_no_batch_has_is_refused(slots: str) -> None:
    ask: Json = ["Ask", "c1", "plain", 2, 2]
    fine = read_token(packed(walk_with(moves=[[ask, "draws the slots 1 0"]])))
    assert isinstance(fine.run, WalkRun)
    with pytest.raises(TokenError, match="cannot read"):
        read_token(packed(walk_with(moves=[[ask, f"draws the slots {slots}"]])))


def test_a_truth_value_is_no_number_of_a_step() -> None:
    with pytest.raises(TokenError, match="argument: expected a whole number, got true or false"):
        read_token(packed(walk_with(moves=[[["Arrive", "p1", True], USUAL]])))


def test_json_that_python_cannot_hold_is_refused() -> None:
    deep = b"[" * 200_000 + b"]" * 200_000
    long = b'{"level": "tlc", "run": ' + b"1" * 5000 + b"}"
    for text in (deep, long):
        with pytest.raises(TokenError, match="says what this forebay cannot read"):
            read_token(packed(None, text=text))
    with pytest.raises(TokenError, match="not a replay token"):
        read_token(f"forebay{'1' * 5000}.abc.0")


def test_a_new_level_registers_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Coin:
        side: str
        level: ClassVar[str] = "coin"

        def as_json(self) -> dict[str, Json]:
            return {"side": self.side}

        def again(self, fault: str) -> Outcome:
            verdict = Verdict.VIOLATED if self.side == fault else Verdict.HOLDS
            return Outcome(name="replay coin", verdict=verdict, bounds="", figures={}, seconds=0.0)

    def read(document: object) -> Coin:
        assert document == {"side": "heads"}
        return Coin("heads")

    monkeypatch.setitem(LEVELS, "coin", read)
    found = read_token(token_of(Coin("heads"), fault="heads"))
    assert found == Token(Coin("heads"), "heads")
    assert found.run.again(found.fault).verdict is Verdict.VIOLATED
