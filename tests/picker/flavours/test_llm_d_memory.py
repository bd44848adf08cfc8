"""What llm-d-router itself takes is what is planned for it: for an entry, and for a request under way."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.cluster.harness.providers.provider import Cluster
from tests.picker.flavours.inputs import EXAMPLE
from tests.picker.flavours.llm_d_itself import ENGINES, blocks, entries_are, start_of
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.llm_d import EACH_VERSION, LlmD, running_llm_d
from tests.picker.harness.pool import Pool, made_pool

from kvtier_common.tier import Tier
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_scorer.config.flavors.llm_d import MIN_BLOCK_TOKENS
from kvtier_scorer.config.model import TierTokens

ENTRIES: Final = 40_000
"""As many in either index."""
ENGINES_WORTH: Final = 12
PLANNED: Final = flavor_traits(Flavor.LLM_D).memory
LONG: Final = "x" * 400_000
"""100,000 tokens."""
COLLECTED: Final = re.compile(rb"^go_gc_duration_seconds_count (\S+)$", re.MULTILINE)
NEXT_COLLECTION: Final = re.compile(rb"^go_memstats_next_gc_bytes (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def pool(control_plane: Cluster, fleet: Fleet) -> Iterator[Pool]:
    with made_pool(control_plane, "llm-d-memory", fleet.port, fleet.ips) as made:
        yield made


def figure(picker: LlmD, pattern: re.Pattern[bytes]) -> float:
    match = pattern.search(picker.metrics())
    assert match
    return float(match[1])


def heap_bytes(picker: LlmD) -> float:
    """How large the heap becomes until Go collects, by what was alive when it did last."""
    before = figure(picker, COLLECTED)
    while figure(picker, COLLECTED) < before + 2:
        picker.pick(blocks(4, "again"))
    return figure(picker, NEXT_COLLECTION)


@EACH_VERSION
def test_an_entry(version: str, pool: Pool, tmp_path: Path) -> None:
    tokens = ENTRIES * MIN_BLOCK_TOKENS
    asked = replace(
        EXAMPLE, tokens=TierTokens({Tier.GPU: tokens, Tier.CPU: tokens}), max_prefix_tokens=131_072
    )
    with running_llm_d(start_of(version, asked), pool, ENGINES, tmp_path) as picker:
        empty = heap_bytes(picker)
        first = picker.pick(blocks(4, "again")).engine
        for number in range(20):
            picker.pick(blocks(2_000, f"{number}"), [first])
        entries_are(picker, ENTRIES, ENTRIES)
        full = heap_bytes(picker)
        assert full - empty <= 2 * ENTRIES * PLANNED.bytes_per_entry


@EACH_VERSION
def test_requests_under_way(version: str, pool: Pool, tmp_path: Path) -> None:
    asked = replace(EXAMPLE, max_prefix_tokens=131_072)
    with running_llm_d(start_of(version, asked), pool, ENGINES, tmp_path) as picker, ExitStack() as under_way:
        none = heap_bytes(picker)
        for _ in range(10 * ENGINES_WORTH):
            under_way.enter_context(picker.asked(LONG))
        assert heap_bytes(picker) - none <= ENGINES_WORTH * PLANNED.in_flight_bytes
