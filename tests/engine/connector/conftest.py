"""An engine with a disk tier for a whole file of tests, and what engines without one answer."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.disk_engine import DiskEngine, tier
from tests.engine.connector.memory_tier import TOGETHER
from tests.engine.connector.prompts import PROMPTS, SMALL_DEVICE, answers, prompt, tokens_of
from tests.shared.hugepages import hugepage_pool
from tests.shared.stores import time_for_values

from kvtier_connector.config import kv_transfer_config
from kvtier_connector.core.behind.break_even import BreakEven, ReadingPays, TokenSpan
from kvtier_connector.core.disk.tier import DiskTier

__all__ = ["hugepage_pool"]


@pytest.fixture(autouse=True)
def unhurried() -> Iterator[None]:
    with time_for_values():
        yield


@pytest.fixture(scope="module")
def disk_pays() -> Iterator[set[float]]:
    """By its own measure a disk on a busy machine may be slower than computing, and is left alone then.

    Gives the bytes per token for which it has been asked.
    """
    asked = set[float]()

    def reading_pays(_: BreakEven, span: TokenSpan, size_bytes: float) -> ReadingPays:
        asked.add(size_bytes / span.tokens)
        return ReadingPays.PAYS

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BreakEven, "reading_pays", reading_pays)
        patch.setattr(DiskTier, "learn", lambda *_, **__: None)  # what the tests count are their own reads
        yield asked


@pytest.fixture(scope="session")
def cold_tokens(engine: Callable[..., Any]) -> list[list[int]]:
    """What an engine without tiers or a prefix cache answers to PROMPTS and TOGETHER."""
    with engine(**SMALL_DEVICE, enable_prefix_caching=False) as llm:
        other = prompt(32, 1) + PROMPTS[-1][32:]
        assert answers(llm, [other])[0][0] != answers(llm, [PROMPTS[-1]])[0][0], "the prefix does not matter"
        return tokens_of([answers(llm, [ids])[0] for ids in PROMPTS + TOGETHER])


@pytest.fixture(scope="session")
def cold(cold_tokens: list[list[int]]) -> list[list[int]]:
    """What such an engine answers to PROMPTS."""
    return cold_tokens[: len(PROMPTS)]


@pytest.fixture(scope="module")
def disk_engine(
    engine: Callable[..., Any],
    cold: list[list[int]],
    disk_pays: set[float],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[DiskEngine]:
    del disk_pays
    del cold  # a second engine in one process takes the first one's metrics away: that one has to be gone
    transfer = kv_transfer_config(tier(tmp_path_factory.mktemp("first")))
    with engine(transfer, **SMALL_DEVICE) as llm:
        yield DiskEngine(llm)


@pytest.fixture(scope="module")
def known(disk_engine: DiskEngine, cold: list[list[int]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all chunks of PROMPTS, which nobody has open: to be copied, then used."""
    folder = tmp_path_factory.mktemp("known") / "disk"
    disk_engine.restart(folder)
    assert disk_engine.ask()[0] == cold
    disk_engine.leave()
    return folder
