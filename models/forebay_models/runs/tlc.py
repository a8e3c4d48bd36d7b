"""The level "tlc": a run of TLC by its name in `tla/manifest.toml`.

TLC searches anew, which finds the same shortest counterexample again, if it is still there. What is
planted in a model is part of its configuration, so no fault can be planted from outside.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from forebay_models.documents import Fields, Json
from forebay_models.outcome import Outcome
from forebay_models.tokens import LEVELS, TokenError


@dataclass(frozen=True)
class TlcRun:
    """One run of TLC by its name in the manifest, such as "writers"."""

    name: str

    level: ClassVar[str] = "tlc"

    def as_json(self) -> dict[str, Json]:
        """Return the run as one JSON object."""
        return {"name": self.name}

    @classmethod
    def from_json(cls, document: object) -> "TlcRun":
        """Return the run that `as_json` gave, or raise `DocumentError`."""
        fields = Fields(document, "run of TLC")
        run = cls(fields.text("name"))
        fields.end()
        return run

    def again(self, fault: str) -> Outcome:
        """Let TLC check the model once more."""
        from forebay_models.tlc_check import check_tlc

        if fault:
            raise TokenError(f"no fault can be planted into a run of TLC, so not {fault!r} either")
        (outcome,) = check_tlc(names=[self.name])
        return replace(outcome, name=f"replay {outcome.name}")


LEVELS[TlcRun.level] = TlcRun.from_json
