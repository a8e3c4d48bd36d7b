"""Starts the buffer that a setting asks for; its storage says which adapter drives it."""

from collections.abc import Mapping
from typing import Final

from forebay_models.adapters.local import LocalAdapter
from forebay_models.adapters.on_device import CudaAdapter, SimulatedAdapter
from forebay_models.adapters.shared import SharedAdapter
from forebay_models.campaign.settings import Setting
from forebay_models.stepping.board import PATIENCE
from forebay_models.stepping.worker import Hands
from forebay_models.targets import StorageKind

_ADAPTERS: Final[Mapping[StorageKind, type[LocalAdapter]]] = {
    "tensor": LocalAdapter,
    "list": LocalAdapter,
    "shared": SharedAdapter,
    "simulated": SimulatedAdapter,
    "cuda": CudaAdapter,
}


def start(
    setting: Setting, *, patience: float = PATIENCE, hands: Hands | None = None
) -> LocalAdapter:
    """Return an adapter for a fresh buffer.

    Args:
        setting: what it runs with.
        patience: seconds within which a thread has to come to a stop.
        hands: lends the threads; see `Crew`.
    """
    adapter = _ADAPTERS[setting.storage]
    return adapter(setting.bounds, setting.storage, setting.seed, patience=patience, hands=hands)
