"""Real engines before a real server: warm with what another has computed, and never a wrong token."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.disk_engine import CHUNK_BYTES
from tests.engine.connector.disk_engine import tier as with_disk
from tests.engine.connector.prompts import CACHED, PROMPTS, SMALL_DEVICE, answers, metric, prompt, tokens_of
from tests.shared.mooncake import mooncake_running
from tests.shared.stores import ENOUGH_S, Store, running, running_cluster, running_replica

from kvtier_common.tier import Tier
from kvtier_connector.config import MIB, ConnectorConfig, Policy, kv_transfer_config
from kvtier_connector.core.remote.tier import RemoteTier

# What vLLM and PyTorch warn of is not ours.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
QUIET_S = 60.0
CHUNKS = sum(CACHED) // 32


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with running("valkey", tmp_path / "store") as store:
        yield store


def remote(url: str, share: str = "team") -> ConnectorConfig:
    """Settings of an engine that shares what it computes."""
    return ConnectorConfig(
        cpu_capacity_bytes=4 * MIB,
        hugepages=Policy.NEVER,
        remote_url=url,
        remote_timeout_s=ENOUGH_S,
        remote_share=share,
        remote_capacity_bytes=64 * MIB,
        remote_weights_read=True,
        remote_break_even=False,  # a tiny model computes as fast as a busy machine reads
    )


class RemoteEngine:
    """An engine whose scheduler is in this process."""

    def __init__(self, llm: Any) -> None:  # noqa: ANN401 - vLLM has no types
        self.llm = llm
        self._core = llm.llm_engine.engine_core.engine_core
        self._connector = self._core.scheduler.connector
        self._follow(lambda: not self.tier.is_down)

    @property
    def tier(self) -> RemoteTier:
        tier: RemoteTier = self._connector._manager.behind.tier(Tier.REMOTE)
        return tier

    def ask(self, prompts: list[list[int]] = PROMPTS) -> tuple[list[list[int]], list[int]]:
        """Return what is answered one after another, and how many tokens of each prompt were cached."""
        found = []
        for ids in prompts:
            found += answers(self.llm, [ids])
            self.settle()
        return tokens_of(found), [cached for _, cached in found]

    def check_warm(self, cold: list[list[int]]) -> None:
        """Ask what another engine has shared."""
        assert self.ask() == (cold, CACHED), f"off: {self.tier._threads._reason or 'never'}"

    def settle(self) -> None:
        """Have all be written that is to be, which happens beside the engine."""
        while self._connector.connector_scheduler._jobs:
            self._core.step_fn()
        self._follow(lambda: not self.tier.is_busy and not self.tier.asking)

    def _follow(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self.tier.wait(QUIET_S)
            self._connector._manager.behind.poll()


def copied(model: Path, folder: Path) -> Path:
    """As another pod fetches it: in files of another time."""
    shutil.copytree(model, folder, copy_function=shutil.copyfile)
    return folder


def test_a_second_engine_is_warm_with_what_the_first_has_used_twice(
    engine: Callable[..., Any],
    model_folder: Callable[..., Path],
    cold: list[list[int]],
    store: Store,
    tmp_path: Path,
) -> None:
    transfer, model = kv_transfer_config(remote(f"redis://{store.address}")), model_folder()
    with engine(transfer, model=model, **SMALL_DEVICE) as llm:
        first = RemoteEngine(llm)
        assert first.ask()[0] == cold
        assert metric(llm, "vllm:kvtier_remote_store_bytes") == 0, "what is used once is not shared"
        assert first.ask()[0] == cold
        answers(llm, [prompt(20)])  # figures come with a step
        assert metric(llm, "vllm:kvtier_remote_store_bytes") == CHUNKS * CHUNK_BYTES
    model = copied(model, tmp_path / "copied")
    with engine(transfer, model=model, **SMALL_DEVICE) as llm:
        second = RemoteEngine(llm)
        second.check_warm(cold)
        answers(llm, [prompt(20)])
        assert metric(llm, "vllm:kvtier_remote_load_bytes") == CHUNKS * CHUNK_BYTES
        assert metric(llm, "vllm:kvtier_remote_hit_chunks") == CHUNKS
        assert metric(llm, "vllm:kvtier_remote_degraded") == 0

        side_by_side = [PROMPTS[-1] + prompt(40, 1), PROMPTS[-1][:320] + prompt(50, 2), prompt(90, 4)]
        alone = [answers(llm, [ids])[0][0] for ids in side_by_side]
        with store.stopped():
            assert tokens_of(answers(llm, [prompt(300, 7), *side_by_side]))[1:] == alone
        store.process.kill()
        assert tokens_of(answers(llm, side_by_side)) == alone
    with engine(transfer, model=model, **SMALL_DEVICE) as llm:  # starts without a store, too
        assert tokens_of([answers(llm, [ids])[0] for ids in PROMPTS]) == cold


def test_a_cluster_whose_server_is_replaced_and_one_that_is_gone(
    engine: Callable[..., Any], model_folder: Callable[..., Path], cold: list[list[int]], tmp_path: Path
) -> None:
    model = model_folder()
    with (
        running_cluster("valkey", tmp_path / "cluster") as stores,
        running_replica("valkey", tmp_path / "replica", stores) as replica,
    ):
        addresses = ",".join(str(server.address) for server in (*stores, replica))
        transfer = kv_transfer_config(remote(f"redis://{addresses}"))
        with engine(transfer, model=model, **SMALL_DEVICE) as llm:
            first = RemoteEngine(llm)
            assert first.ask()[0] == cold
            assert first.ask()[0] == cold
        assert all(store.ask("DBSIZE") for store in stores)
        with engine(transfer, model=model, **SMALL_DEVICE) as llm:
            second = RemoteEngine(llm)
            replica.ask("CLUSTER", "FAILOVER")
            replica.process.wait_until(lambda: replica.ask("ROLE")[0] == b"master")  # type: ignore[index]
            assert second.ask()[0] == cold, "what has moved is computed"
            stores[0].process.kill()
            assert second.ask()[0] == cold
            assert not second.tier.is_down
        with engine(transfer, model=model, **SMALL_DEVICE) as llm:
            third = RemoteEngine(llm)
            third.check_warm(cold)  # the replica has what the server had
            stores[1].process.kill()
            assert tokens_of(answers(llm, [prompt(300, 7), *PROMPTS]))[1:] == cold
        with engine(transfer, model=model, **SMALL_DEVICE) as llm:  # with what two of three have
            tokens, cached = RemoteEngine(llm).ask()
            assert tokens == cold
            assert 0 < sum(cached) < sum(CACHED)


def test_with_a_disk_in_between(
    engine: Callable[..., Any],
    model_folder: Callable[..., Path],
    cold: list[list[int]],
    store: Store,
    tmp_path: Path,
) -> None:
    model = model_folder()
    both = replace(
        remote(f"redis://{store.address}", "both"),
        disk_path=str(tmp_path / "disk"),
        disk_capacity_bytes=3 * MIB,
        disk_timeout_s=with_disk(tmp_path).disk_timeout_s,
        disk_break_even=False,
    )
    with engine(kv_transfer_config(both), model=model, **SMALL_DEVICE) as llm:
        first = RemoteEngine(llm)
        assert first.ask()[0] == cold
        assert first.ask()[0] == cold
    fresh = replace(both, disk_path=str(tmp_path / "other"))
    with engine(kv_transfer_config(fresh), model=model, **SMALL_DEVICE) as llm:
        RemoteEngine(llm).check_warm(cold)


@pytest.mark.long
def test_two_engines_share_a_mooncake_store(
    engine: Callable[..., Any],
    model_folder: Callable[..., Path],
    cold: list[list[int]],
    tmp_path: Path,
) -> None:
    model = model_folder()
    with mooncake_running(tmp_path) as mooncake:
        transfer = kv_transfer_config(remote(mooncake.url))
        with engine(transfer, model=model, **SMALL_DEVICE) as llm:
            first = RemoteEngine(llm)
            assert first.ask()[0] == cold
            assert first.ask()[0] == cold
            answers(llm, [prompt(20)])  # figures come with a step
            assert metric(llm, "vllm:kvtier_remote_store_bytes") == CHUNKS * CHUNK_BYTES
        with engine(transfer, model=model, **SMALL_DEVICE) as llm:
            second = RemoteEngine(llm)
            second.check_warm(cold)
            answers(llm, [prompt(20)])
            assert metric(llm, "vllm:kvtier_remote_load_bytes") == CHUNKS * CHUNK_BYTES
            mooncake.master.kill()
            assert tokens_of([answers(llm, [ids])[0] for ids in PROMPTS]) == cold
    with engine(transfer, model=model, **SMALL_DEVICE) as llm:  # starts without a store, too
        assert tokens_of([answers(llm, [ids])[0] for ids in PROMPTS]) == cold
