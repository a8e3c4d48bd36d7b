"""Damaged checkpoints are refused, and a planted fault that would load one is found."""

import pytest
from forebay import _manifest
from forebay._manifest import Manifest, Unusable
from forebay_models.cli import main
from forebay_models.faults.corruption import Damages
from forebay_models.faults.crew import Wrong


def damages(count: int, *, seed: int = 0, fault: str = "") -> Damages:
    return Damages(damages=count, seed=seed, every_bit=False, fault=fault, tell=lambda text: None)


def test_every_byte_and_each_kind_of_damage_is_refused() -> None:
    campaign = damages(60)
    campaign.run()
    assert campaign.did.pop("bytes") == campaign.bytes > 500
    assert campaign.did.keys() == {"cut", "flip", "insert", "move", "remove", "swap", "zero"}
    assert campaign.did.total() == 60


def test_the_same_seed_gives_the_same_damages() -> None:
    campaigns = [damages(20, seed=seed) for seed in (7, 7, 8)]
    for campaign in campaigns:
        campaign.run()
    first, again, other = (campaign.did for campaign in campaigns)
    assert first == again != other


def test_bytes_that_are_not_compared_are_found() -> None:
    with pytest.raises(Wrong, match=r"safetensors with a damage .* is loaded as if nothing"):
        damages(0, fault="digest_unchecked").run()


def test_an_error_of_another_kind_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def unseal(raw: bytes) -> Manifest:
        try:
            return honest(raw)
        except Unusable:
            raise KeyError("format") from None

    honest = _manifest.unseal
    monkeypatch.setattr(_manifest, "unseal", unseal)
    with pytest.raises(Wrong, match=r"manifest.json with a damage .* gives KeyError: 'format'"):
        damages(0).run()


@pytest.mark.slow
def test_the_command_finds_the_planted_fault(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--no-points", "--kills", "0", "--damages", "5", "--plant", "digest_unchecked"]
    assert main(["campaign", "faults", *arguments]) == 1
    assert "is loaded as if nothing were wrong" in " ".join(capsys.readouterr().out.split())
