"""The default image has the newest minor of vLLM that a card has seen."""

from dataclasses import replace

import pytest

from kvtier_connector.supported import TESTED_RELEASES, minor_of
from kvtier_operator.planning import cards
from kvtier_operator.planning.cards import SIGHTINGS, newest_seen
from kvtier_operator.planning.images import PUBLISHED, ImageName


@pytest.mark.parametrize("name", [ImageName.VLLM, ImageName.VLLM_CPU])
def test_the_default_image_has_what_a_card_has_seen(name: ImageName) -> None:
    assert PUBLISHED[name].rpartition(":")[2] == f"v{newest_seen()}"


def test_what_a_card_has_seen_is_accepted() -> None:
    assert {minor_of(each.vllm) for each in SIGHTINGS} <= {*TESTED_RELEASES}


def test_the_newest_is_so_by_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    (one, *_) = SIGHTINGS
    releases = ("0.9.1", "0.10.0", "0.9.12")
    seen = tuple(replace(one, vllm=release) for release in releases)
    monkeypatch.setattr(cards, "SIGHTINGS", seen)
    assert newest_seen() == "0.10.0"
