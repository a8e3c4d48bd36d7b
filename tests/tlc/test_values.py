"""TLA+ values are read exactly, in every way in which TLC prints them."""

import pytest
from forebay_models.tlc.values import BadValue, Function, Value, parse, show, unquote


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("TRUE", True),
        ('"p1"', "p1"),
        ('"a \\"b\\" \\\\ c"', 'a "b" \\ c'),
        ("model_value", "model_value"),
        ("<<>>", ()),
        ("<< >>", ()),
        ('<<"Arrive", "p1", 2>>', ("Arrive", "p1", 2)),
        ("{}", frozenset()),
        ("{1, {2}}", frozenset({1, frozenset({2})})),
        ("1..3", frozenset({1, 2, 3})),
        ("[uses |-> 0, kind |-> <<1>>]", Function({"uses": 0, "kind": (1,)})),
        ('( 0 :> "a" @@\n  1 :> "b" )', Function({0: "a", 1: "b"})),
    ],
)
def test_a_printed_value_is_read(text: str, value: Value) -> None:
    read = parse(text)
    assert read == value
    assert type(read) is type(value)


def test_the_order_of_fields_does_not_matter() -> None:
    one, other = parse("[a |-> 1, b |-> 2]"), parse("[b |-> 2, a |-> 1]")
    assert one == other
    assert {one} == {other}


@pytest.mark.parametrize(
    "text",
    ["", "<<1", "<<1,>>", "{1 2}", "[a |-> ]", "[a : 1]", "1 2", "(1 :> 2", "<<1>>>", "1 # 2", ","],
)
def test_what_is_not_exactly_one_value_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        parse(text)


def test_a_printed_string_is_unquoted() -> None:
    assert unquote('"<<\\"INIT\\", 1>>"') == '<<"INIT", 1>>'
    with pytest.raises(BadValue, match="not a string"):
        unquote("<<1>>")


def test_a_value_is_shown_short() -> None:
    value = parse('[slots |-> <<[phase |-> "live", uses |-> 1]>>, on |-> TRUE, set |-> {2, 1}]')
    assert show(value) == "[slots=([phase=live uses=1]) on=TRUE set={1, 2}]"
