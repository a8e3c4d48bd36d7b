"""What a campaign can exercise on a target whose actors cannot be killed: threads cannot.

The quick graphs in which somebody may be killed are left out there, and so are the two actions and
the witnesses about the dead.
"""

from collections.abc import Mapping
from typing import Final

from forebay_spec.actions import ACTIONS
from forebay_spec.bounds import FEATURES, QUICK, Bounds
from forebay_spec.properties import WITNESSES

_ABOUT_THE_DEAD: Final = frozenset({"Kill", "Recover"})

FEATURES_WITHOUT_KILLS: Final = FEATURES - {"Kill"}
ACTIONS_WITHOUT_KILLS: Final = tuple(name for name in ACTIONS if name not in _ABOUT_THE_DEAD)
WITNESSES_WITHOUT_KILLS: Final = tuple(
    name for name, row in WITNESSES.items() if not _ABOUT_THE_DEAD & set(row.actions)
)


def graphs_without_kills() -> Mapping[str, Bounds]:
    """Return the quick graphs in which nobody is killed, by name."""
    return {name: bounds for name, bounds in QUICK.items() if "Kill" not in bounds.features}
