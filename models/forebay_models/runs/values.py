"""Bounds and steps as JSON and back, whole, so that a token needs nothing that may change later.

Names alone would be shorter; but the bounds behind a name are made wider now and then, and an old
failure would then be run within other bounds.
"""

from collections.abc import Iterable
from itertools import product
from typing import Final, get_args

from forebay_spec.actions import ACTIONS, Label
from forebay_spec.bounds import Bounds, ConsumingOrder, Order, ReaderKind, Request
from forebay_spec.kernel import Closing

from forebay_models.documents import DocumentError, Fields, Json, kind, text

_OF_HOLDS: Final = ("Ready", "Fail", "Deliver", "Return")


def bounds_json(bounds: Bounds) -> dict[str, Json]:
    """Return bounds as one JSON object."""
    return {
        "name": bounds.name,
        "capacity": bounds.capacity,
        "uses": bounds.uses,
        "order": bounds.order,
        "drop_last": bounds.drop_last,
        "producers": list(bounds.producers),
        "readers": list(bounds.readers),
        "write_sizes": list(bounds.write_sizes),
        "requests": [list(request) for request in bounds.requests],
        "token_of": [list(pair) for pair in bounds.token_of],
        "process_of": [list(pair) for pair in bounds.process_of],
        "prefetch": bounds.prefetch,
        "batch_size": bounds.batch_size,
        "features": sorted(bounds.features),
        "closings": [mode.name for mode in bounds.closings],
    }


def read_bounds(document: object) -> Bounds:
    """Return the bounds that `bounds_json` gave, or raise `DocumentError`."""
    fields = Fields(document, "bounds")
    try:
        bounds = Bounds(
            name=fields.text("name"),
            capacity=fields.whole("capacity"),
            uses=fields.whole("uses"),
            order=read_order(fields.text("order")),
            drop_last=fields.flag("drop_last"),
            producers=fields.texts("producers"),
            readers=fields.texts("readers"),
            write_sizes=tuple(whole(n, "write size") for n in fields.items("write_sizes")),
            requests=tuple(_request(row) for row in fields.items("requests")),
            token_of=tuple(_pair(row, "token") for row in fields.items("token_of")),
            process_of=tuple(_pair(row, "process") for row in fields.items("process_of")),
            prefetch=fields.whole("prefetch"),
            batch_size=fields.whole("batch_size"),
            features=frozenset(fields.texts("features")),
            closings=tuple(_closing(name) for name in fields.texts("closings")),
        )
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(f"impossible bounds: {error}") from error
    fields.end()
    return bounds


def label_json(label: Label) -> list[Json]:
    """Return a step as a list: the action and its arguments."""
    return [label.name, *label.args]


def read_label(document: object, bounds: Bounds) -> Label:
    """Return the step that `label_json` gave, or raise `DocumentError`.

    A step that no state within the bounds has is refused, since guards and effects are only made
    for arguments that an action can have. Whether it can happen where it stands is not asked.
    """
    name, *args = listed(document, "step", least=1)
    if not isinstance(name, str) or name not in ACTIONS:
        raise DocumentError(f"step: the specification has no action {name!r}")
    label = Label(name, tuple(_argument(it) for it in args))
    if not _is_possible(label, bounds):
        raise DocumentError(f"step: nothing like {label} happens within the bounds {bounds.name!r}")
    return label


def listed(document: object, what: str, *, least: int) -> list[object]:
    """Return a value that is a list of at least so many items."""
    if not isinstance(document, list) or len(document) < least:
        raise DocumentError(f"{what}: expected a list of {least} or more, got {kind(document)}")
    return document


def exactly(document: object, what: str, count: int) -> list[object]:
    """Return a value that is a list of so many items."""
    items = listed(document, what, least=count)
    if len(items) != count:
        raise DocumentError(f"{what}: expected {count} items, got {len(items)}")
    return items


def whole(value: object, what: str) -> int:
    """Return a value that is a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise DocumentError(f"{what}: expected a whole number, got {kind(value)}")
    return value


def _argument(value: object) -> str | int:
    return value if isinstance(value, str) else whole(value, "argument")


def _is_possible(label: Label, bounds: Bounds) -> bool:
    """Tell whether there may be a state within the bounds in which a step can happen."""
    if label.name not in _OF_HOLDS:
        return label.args in _arguments(label.name, bounds)
    return len(label.args) == 1 and isinstance(label.args[0], int) and label.args[0] >= 0


def _arguments(name: str, bounds: Bounds) -> Iterable[tuple[str | int, ...]]:
    """Return all that an action may have as arguments; it is none about a hold."""
    if name == "Arrive":
        return product(bounds.producers, bounds.write_sizes)
    if name == "Ask":
        return ((c, *request) for c in bounds.readers for request in bounds.requests)
    if name == "SetCancel":
        return ((token,) for token in bounds.tokens)
    if name == "Close":
        return ((mode.name.lower(),) for mode in bounds.closings)
    if name == "Refill":
        return ((process,) for process in bounds.reading)
    return ((),) if name in ("Empty", "Recall") else ((actor,) for actor in bounds.actors)


def _request(document: object) -> Request:
    name, k, m = exactly(document, "request", 3)
    kinds: tuple[ReaderKind, ...] = get_args(ReaderKind)
    for known in kinds:
        if name == known:
            return Request(known, whole(k, "request"), whole(m, "request"))
    raise DocumentError(f"request: {name!r} is none of {', '.join(kinds)}")


def _pair(document: object, what: str) -> tuple[str, str]:
    actor, named = exactly(document, f"{what} of an actor", 2)
    return text(actor, "actor"), text(named, what)


def read_order(name: str) -> Order:
    """Return the order of that name, or raise `DocumentError`."""
    orders: tuple[Order, ...] = get_args(Order)
    for known in orders:
        if name == known:
            return known
    raise DocumentError(f"order: {name!r} is none of {', '.join(orders)}")


def read_consuming_order(name: str) -> ConsumingOrder:
    """Return the order of that name of a consuming buffer, or raise `DocumentError`."""
    order = read_order(name)
    if order == "replacement" or order == "epochs":
        raise DocumentError(f"order: {name!r} is none of a consuming buffer")
    return order


def _closing(name: str) -> Closing:
    if name not in Closing.__members__:
        raise DocumentError(f"closing: {name!r} is none of {', '.join(Closing.__members__)}")
    return Closing[name]
