"""An observer that remembers what it was told."""

from forebay_models.outcome import Outcome


class Recorder:
    """Remembers names in the order in which they came."""

    def __init__(self) -> None:
        self.expected = 0
        self.begun: list[str] = []
        self.ended: list[str] = []

    def expects(self, count: int) -> None:
        self.expected += count

    def begins(self, name: str) -> None:
        self.begun.append(name)

    def says(self, name: str, text: str) -> None:
        assert name in self.begun

    def ends(self, name: str, outcome: Outcome) -> None:
        assert outcome.seconds >= 0
        self.ended.append(name)
