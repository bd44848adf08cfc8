"""What each side of a comparison gives its engine: one line of `MAKERS` a side.

All sides get the same memory. A disk behind it is in a folder of the benchmark's, and so is a control socket.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from kvtier_connector.bench.choices import (
    KVTIER,
    LMCACHE,
    NONE,
    SYNC,
    VLLM,
    VLLM_DISK,
    WHOLE_LOADS,
)
from kvtier_connector.config import GIB

_FILE_TOKENS: Final = 256
"""Of a file of vLLM's tier of files, as backend Native plans it: smaller ones cost more lookups."""
_LMCACHE_CHUNK_TOKENS: Final = 256
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSetup:
    """What every side is made of."""

    tier: Mapping[str, Any]  # `kv_transfer_config` of kvtier's connector
    capacity_bytes: int  # of the memory of every side's tier, all ranks together
    ranks: int  # that share it
    block_tokens: int  # of a KV block
    folder: Path  # for the files of one engine's life; empty at its start
    sockets: Path  # for its sockets, whose paths have 107 bytes at most


@dataclass(frozen=True, slots=True, kw_only=True)
class SideEngine:
    """What an engine gets on a side, over what all sides have."""

    transfer: Mapping[str, Any] | None  # `kv_transfer_config`; None for no connector
    settings: Mapping[str, Any] = field(default_factory=dict)  # further arguments of vLLM's `LLM`
    variables: Mapping[str, str] = field(default_factory=dict)  # of its environment

    def arguments(self) -> dict[str, Any]:
        """All arguments of vLLM's `LLM`."""
        return {"kv_transfer_config": None if self.transfer is None else dict(self.transfer), **self.settings}


def side_engine(side: str, setup: SideSetup) -> SideEngine:
    """Make a side's engine."""
    return MAKERS[side](setup)


def absent(side: str) -> str:
    """Return why a side cannot be had here, for people; empty if it can."""
    package = _PACKAGES.get(side, "")
    return f"{package} is not installed" if package and find_spec(package) is None else ""


def _kvtier(setup: SideSetup, changes: Mapping[str, Any] = _NOTHING, **settings: object) -> SideEngine:
    extra = {**setup.tier["kv_connector_extra_config"], **changes}
    if extra.get("control_path"):
        extra["control_path"] = str(setup.sockets / "control")
    return SideEngine(transfer={**setup.tier, "kv_connector_extra_config": extra}, settings=settings)


def _vllm(setup: SideSetup, **extra: object) -> SideEngine:
    transfer = {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"cpu_bytes_to_use": setup.capacity_bytes, **extra},
    }
    return SideEngine(transfer=transfer)


def _vllm_disk(setup: SideSetup) -> SideEngine:
    return _vllm(
        setup,
        spec_name="TieringOffloadingSpec",
        blocks_per_chunk=-(-_FILE_TOKENS // setup.block_tokens),
        secondary_tiers=[{"type": "fs", "root_dir": str(setup.folder / "disk")}],
    )


def _lmcache(setup: SideSetup) -> SideEngine:
    transfer = {
        "kv_connector": "LMCacheConnectorV1",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
    }
    variables = {
        "LMCACHE_TRACK_USAGE": "false",
        "LMCACHE_CHUNK_SIZE": str(_LMCACHE_CHUNK_TOKENS),
        "LMCACHE_LOCAL_CPU": "True",
        "LMCACHE_MAX_LOCAL_CPU_SIZE": str(setup.capacity_bytes / setup.ranks / GIB),
    }
    return SideEngine(transfer=transfer, variables=variables)


MAKERS: Final[Mapping[str, Callable[[SideSetup], SideEngine]]] = {
    NONE: lambda _setup: SideEngine(transfer=None),
    VLLM: _vllm,
    VLLM_DISK: _vllm_disk,
    KVTIER: _kvtier,
    WHOLE_LOADS: lambda setup: _kvtier(setup, {"layered_loads": False}),
    SYNC: lambda setup: _kvtier(setup, async_scheduling=False),
    LMCACHE: _lmcache,
}
"""By the names of `choices.TITLES`."""
_PACKAGES: Final = {LMCACHE: "lmcache"}
