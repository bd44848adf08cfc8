"""The bench of hints on traces short enough to be followed by hand, and its picture."""

from xml.etree import ElementTree as ET

from tests.bench.hints.__main__ import check, over_seeds
from tests.bench.hints.caches import CHUNK_TOKENS, in_chunks, index_hits, lru_hits, working_set_chunks
from tests.bench.hints.picture import SIDES, picture
from tests.unit.scorer.simulate.pools import asked, trace

from kvtier_common.hints import NO_HINTS

SIDES_FOUND = dict.fromkeys((*SIDES, "LRU of the rest"), 0.5)
TENANTS_FOUND = {"alone": 0.8, "with the flood, half guaranteed": 0.79}


def test_chunks_of_one_prompt_alone_are_numbered_apart_and_the_working_set_is_what_comes_back() -> None:
    one, two = CHUNK_TOKENS, 2 * CHUNK_TOKENS
    found = in_chunks(
        trace(asked(("s", one), ("a", one), at_s=0.0), asked(("s", one), ("b", two), at_s=10.0))
    )
    assert [len(prompt) for prompt in found.prompts] == [2, 3]
    assert found.prompts[0][0] == found.prompts[1][0]
    assert len({chunk for prompt in found.prompts for chunk in prompt}) == 4
    assert working_set_chunks(found) == 1


def test_with_room_for_all_the_index_finds_what_lru_finds() -> None:
    found = in_chunks(trace(*(asked((name, 1000), at_s=float(at)) for at, name in enumerate("abcabcba"))))
    hits = index_hits(found, 64, hints=[NO_HINTS] * 8)
    assert hits == lru_hits(found, 64)
    assert sum(hits) == 5 * 7


def test_what_is_asked_holds_only_if_it_does_with_every_seed() -> None:
    good = SIDES_FOUND | {"true hints": 0.7, "asked": 0.65}
    assert all(check([good, good], [TENANTS_FOUND]).values())
    assert not all(check([good, good | {"true hints": 0.6}], [TENANTS_FOUND]).values())
    assert not all(check([good, good | {"half greedy": 0.4}], [TENANTS_FOUND]).values())
    assert not all(check([good], [TENANTS_FOUND, TENANTS_FOUND | {"alone": 0.9}]).values())


def test_the_picture_is_well_formed_and_has_a_bar_for_every_side() -> None:
    rates = over_seeds([SIDES_FOUND | {"asked": 0.6}])
    drawn = ET.fromstring(picture(rates, {"alone": [(60.0, 0.5), (120.0, 0.7)]}))  # noqa: S314 - ours
    words = {element.text for element in drawn.iter() if element.tag.endswith("text")}
    assert {*SIDES, "alone"} <= words
