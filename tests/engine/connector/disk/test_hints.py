"""A real engine whose requests say what they know: what that comes to on disk and in a shared store."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.disk_engine import CHUNK_BYTES, QUIET_S, DiskEngine
from tests.engine.connector.disk_engine import tier as with_disk
from tests.engine.connector.prompts import SMALL_DEVICE, answers, hinted_answer, metric, prompt
from tests.shared.stores import ENOUGH_S, Store, running

from kvtier_common.tier import Tier
from kvtier_connector.config import MIB, ConnectorConfig, kv_transfer_config

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

# The disk holds 62 chunks of 32 tokens; a prompt here has ten of them and a token.
LENGTH = 321
WHOLE = 320
KEPT = {"retain": 3600, "priority": "high"}


class Behind(DiskEngine):
    """An engine whose tiers behind memory are taken away and given back."""

    def ask_for(self, seed: int, hints: object = None, salt: str | None = None) -> tuple[list[int], int]:
        """Return what a prompt is answered and how many of its tokens were cached; all has been written."""
        answer = hinted_answer(self.llm, prompt(LENGTH, seed), hints, salt)
        self.settle()
        return answer

    def start_with(self, settings: ConnectorConfig) -> None:
        """Have nothing on the device and in memory, and other tiers behind it."""
        self.leave()
        self.open(settings)
        self._follow(lambda tier: not tier.is_down)

    def settle(self) -> None:
        """Have all be written that is to be, which happens beside the engine."""
        self._finish_stores()
        self._follow(lambda tier: not tier.is_busy and not tier.asking)

    def _follow(self, is_so: Callable[[Any], bool]) -> None:
        behind = self.connector._manager.behind
        for tier in map(behind.tier, behind.kinds):
            while not is_so(tier):
                tier.wait(QUIET_S)
                behind.poll()


def on_disk(path: Path) -> ConnectorConfig:
    """Return settings by which memory retains nothing, so that what is retained comes from disk."""
    return replace(with_disk(path), cpu_retained_share=0.0, disk_retained_share=0.5)


def shared(settings: ConnectorConfig, store: Store) -> ConnectorConfig:
    """Return the same settings with a store that others share."""
    return replace(
        settings,
        remote_url=f"redis://{store.address}",
        remote_timeout_s=ENOUGH_S,
        remote_share="team",
        remote_capacity_bytes=64 * MIB,
        remote_weights_read=True,
        remote_break_even=False,  # a tiny model computes as fast as a busy machine reads
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with running("valkey", tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture(scope="module")
def behind(
    engine: Callable[..., Any], disk_pays: set[float], store: Store, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Behind]:
    del disk_pays
    settings = shared(
        on_disk(tmp_path_factory.mktemp("first")), store
    )  # metrics are of the tiers it begins with
    with engine(kv_transfer_config(settings), **SMALL_DEVICE) as llm:
        yield Behind(llm)


def test_a_retained_prompt_survives_a_flood_on_disk(behind: Behind, tmp_path: Path) -> None:
    settings = on_disk(tmp_path / "disk")
    behind.start_with(settings)
    kept, _ = behind.ask_for(1, KEPT)
    behind.ask_for(2)
    for seed in range(1000, 1010):
        behind.ask_for(seed)
    behind.start_with(settings)
    assert behind.ask_for(1) == (kept, WHOLE)
    assert behind.ask_for(2)[1] == 0


def test_what_is_not_to_be_stored_is_on_no_disk_and_in_no_store(
    behind: Behind, store: Store, tmp_path: Path
) -> None:
    behind.start_with(shared(on_disk(tmp_path / "disk"), store))

    def written() -> tuple[int, float]:
        answers(behind.llm, [prompt(20)])  # figures come with a step
        return behind.disk.used, metric(behind.llm, "vllm:kvtier_remote_store_bytes")

    before = written()
    for _ in range(2):  # a store gets what is used again
        behind.ask_for(3, {"nostore": True, **KEPT})
    assert written() == before
    behind.ask_for(4, KEPT)
    assert written() == (10, before[1] + 10 * CHUNK_BYTES)


def test_no_salt_finds_what_another_has_on_disk_or_in_the_store(
    behind: Behind, store: Store, tmp_path: Path
) -> None:
    disk = on_disk(tmp_path / "disk")
    behind.start_with(shared(disk, store))
    first, _ = behind.ask_for(5, KEPT, salt="a:x")
    for settings, kind in ((disk, Tier.DISK), (shared(on_disk(tmp_path / "other"), store), Tier.REMOTE)):
        behind.start_with(settings)
        for salt in ("b:x", "a", None):
            assert behind.ask_for(5, salt=salt) == (first, 0), f"{salt} found what a:x has in {kind}"
        behind.start_with(settings)
        assert behind.ask_for(5, salt="a:x") == (first, WHOLE), kind
