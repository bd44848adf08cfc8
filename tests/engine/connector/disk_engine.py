"""An engine in this process whose disk tier is taken away and given back, as restarts do, but in a moment."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.engine.connector.prompts import PROMPTS, answers, overwrite
from tests.unit.connector.disk.rig.faulty_engine import FaultyEngine

from kvtier_common.tier import Tier
from kvtier_connector.config import MIB, ConnectorConfig, Policy

if TYPE_CHECKING:
    from vllm import LLM

    from kvtier_connector.core.disk.files.fingerprint import Fingerprint
    from kvtier_connector.core.disk.tier import DiskTier

# A chunk of 32 tokens has 32 KiB in the tiny model: PROMPTS have 39 of them, and the disk holds them all.
CHUNK_BYTES = 32 << 10
QUIET_S = 60.0


def tier(path: Path, capacity_bytes: int = 3 * MIB) -> ConnectorConfig:
    """Return the settings of an engine with a disk tier."""
    return ConnectorConfig(
        cpu_capacity_bytes=4 * MIB,
        hugepages=Policy.NEVER,
        disk_path=str(path),
        disk_capacity_bytes=capacity_bytes,
        disk_timeout_s=120.0,  # a shared machine's file system now and then needs seconds for a few bytes
        disk_break_even=False,  # a tiny model computes as fast as such a file system reads
    )


@dataclass
class DiskEngine:
    """An engine whose scheduler is in this process."""

    llm: "LLM"

    @property
    def connector(self) -> Any:  # noqa: ANN401 - vLLM has no types
        return self._core.scheduler.connector

    @property
    def disk(self) -> "DiskTier":
        disk: DiskTier = self.connector._manager.behind.tier(Tier.DISK)
        return disk

    @property
    def fingerprint(self) -> "Fingerprint":
        from kvtier_connector.core.disk.files.fingerprint import fingerprint  # noqa: PLC0415 - as below
        from kvtier_connector.vllm.fingerprint import engine_facts  # noqa: PLC0415 - imports vLLM

        connector = self.connector
        config, kv_cache = connector._vllm_config, connector._kv_cache_config
        return fingerprint(engine_facts(config, kv_cache, connector._manager.geometry))

    @property
    def _core(self) -> Any:  # noqa: ANN401 - vLLM has no types
        return self.llm.llm_engine.engine_core.engine_core

    def leave(self) -> None:
        """Let go of the disk and have device and memory forget, as an engine that ends."""
        manager = self.connector._manager
        if manager.behind is not None:
            self.settle()
            manager.behind.close()
            manager.behind = None
        overwrite(self.llm)
        self._finish_stores()

    def settle(self) -> None:
        """Have all that is to be written be on disk, which happens beside the engine."""
        self._finish_stores()
        disk = self.disk
        while disk.is_busy:
            assert disk._disk.wait(QUIET_S), "the disk does not end"
            self.connector._manager.behind.poll()

    def _finish_stores(self) -> None:
        """Do the steps that an engine with a process of its own does while it has no requests."""
        while self.connector.connector_scheduler._jobs:
            self._core.step_fn()

    def enter(self, path: Path, capacity_bytes: int = 3 * MIB, warm_start_s: float = 0.0) -> None:
        """Open a folder with nothing in memory, as an engine that starts."""
        self.open(replace(tier(path, capacity_bytes), warm_start_s=warm_start_s))

    def open(self, settings: ConnectorConfig) -> None:
        """Open what is behind memory by other settings; those of memory itself stay."""
        self.connector._handshake._settings = settings
        workers = self._core.model_executor.get_kv_connector_handshake_metadata()
        offers = {rank: offer for worker in workers for (_, rank), offer in worker.items()}
        self.connector.set_xfer_handshake_metadata(offers)

    def restart(self, path: Path, capacity_bytes: int = 3 * MIB, warm_start_s: float = 0.0) -> None:
        self.leave()
        self.enter(path, capacity_bytes, warm_start_s)

    def ask(self, prompts: Sequence[list[int]] = tuple(PROMPTS)) -> tuple[list[list[int]], list[int]]:
        """Return what is answered one after another, and how many tokens of each prompt were cached.

        Nothing of it is dropped because the disk is slow: each has been written before the next is asked.
        """
        found = []
        for ids in prompts:
            found += answers(self.llm, [ids])
            if not self.disk.is_down:
                self.settle()
        return [tokens for tokens, _ in found], [cached for _, cached in found]


def with_faults(engine: DiskEngine) -> FaultyEngine:
    """Put faults between the disk tier's thread and the kernel."""
    loop: Any = engine.disk._disk._loop
    faulty = FaultyEngine(loop.engine)
    loop.engine = loop._submitter._engine = faulty
    return faulty
