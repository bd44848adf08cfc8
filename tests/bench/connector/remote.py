"""The part `remote` of `kvtier bench connector` with LMCache beside it, before the same store.

LMCache's connector of one process serves no CPU, so it is its server of the multiprocess form, one for each
engine, that speaks to the store. On a GPU it needs packages for CUDA that are not installed here.
"""

import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from tests.bench.connector.disk.lmcache_install import LMCacheMissingError, lmcache_environment
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process

from kvtier_connector.bench import remote_tier
from kvtier_connector.bench.comparison import Comparison
from kvtier_connector.bench.measure import Run
from kvtier_connector.bench.remote_tier import Side
from kvtier_connector.bench.store.figures import rows
from kvtier_connector.bench.store.server import BenchStore
from kvtier_connector.config import GIB

__all__ = ["measure", "rows"]

_LMCACHE: Final = "lmcache"
_CHUNK_TOKENS: Final = 256  # LMCache's own
_HOST: Final = "127.0.0.1"
_WORKERS: Final = 4  # of its client, as many as the connector has connections


def measure(run: Run) -> dict[str, Any]:
    """Measure what the product's part does, and LMCache where it can be installed."""
    try:
        environment = lmcache_environment()
    except LMCacheMissingError as error:
        run.say(f"remote: {error}")
        return remote_tier.measure(run)
    return remote_tier.compare_remote(run, partial(lmcache_sides, environment=environment))


@contextmanager
def lmcache_sides(
    comparison: Comparison, store: BenchStore, tokens: int, log: Path, *, environment: Mapping[str, str]
) -> Iterator[Mapping[str, Side]]:
    """Run two of LMCache's servers, each with a tier of so many tokens before the store.

    The engines that are started meanwhile find LMCache.
    """
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, environment))
        transfers = list[Mapping[str, Any]]()
        for number, port in enumerate(free_ports(2), start=1):
            command = _server(port, store.port, comparison.tier_bytes(tokens))
            server = Process(command, log.with_suffix(f".{_LMCACHE}.server.{number}.log"), env=os.environ)
            stack.callback(server.kill)
            server.wait_until(partial(_listens, port))
            transfers.append(_transfer(port))
        first, second = transfers
        yield {_LMCACHE: Side(title="LMCache, the same store", first=first, second=second)}


def _server(port: int, store_port: int, capacity_bytes: int) -> list[str]:
    adapter = {"type": "resp", "host": _HOST, "port": store_port, "num_workers": _WORKERS}
    options = {
        "host": _HOST,
        "port": str(port),
        "chunk-size": str(_CHUNK_TOKENS),
        "max-workers": "1",
        "l1-size-gb": f"{capacity_bytes / GIB:.3f}",
        "eviction-policy": "LRU",
        "supported-transfer-mode": "engine_driven",  # the engine copies, as there is no device to share
        "l2-adapter": json.dumps(adapter),
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    flags = ["--no-l1-use-lazy", "--disable-observability"]
    return [sys.executable, "-m", "lmcache.v1.multiprocess.server", *words, *flags]


def _transfer(port: int) -> dict[str, Any]:
    return {
        "kv_connector": "LMCacheMPConnector",
        "kv_connector_module_path": "lmcache.integration.vllm.lmcache_mp_connector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"lmcache.mp.host": f"tcp://{_HOST}", "lmcache.mp.port": port},
    }


def _listens(port: int) -> bool:
    with closing(socket.socket()) as client:
        return client.connect_ex((_HOST, port)) == 0
