"""An engine with a disk tier for a whole file of tests, and what engines without one answer."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.disk_engine import PROMPTS, DiskEngine, engines_in_this_process, tier
from tests.engine.connector.prompts import SMALL_DEVICE, answers, tokens_of

from kvtier_connector.config import kv_transfer_config


@pytest.fixture(scope="session")
def cold(engine: Callable[..., Any]) -> list[list[int]]:
    """What an engine without tiers or a prefix cache answers to PROMPTS."""
    with engine(**SMALL_DEVICE, enable_prefix_caching=False) as llm:
        return tokens_of([answers(llm, [ids])[0] for ids in PROMPTS])


@pytest.fixture(scope="module")
def disk_engine(
    engine: Callable[..., Any], cold: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DiskEngine]:
    del cold  # a second engine in one process takes the first one's metrics away: that one has to be gone
    transfer = kv_transfer_config(tier(tmp_path_factory.mktemp("first")))
    with engines_in_this_process(), engine(transfer, **SMALL_DEVICE) as llm:
        yield DiskEngine(llm)


@pytest.fixture(scope="module")
def known(disk_engine: DiskEngine, cold: list[list[int]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all chunks of PROMPTS, which nobody has open: to be copied, then used."""
    folder = tmp_path_factory.mktemp("known") / "disk"
    disk_engine.restart(folder)
    assert disk_engine.ask()[0] == cold
    disk_engine.leave()
    return folder
