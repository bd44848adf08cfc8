"""An engine's connector, taken out and put back while the engine runs; for benchmarks.

Source: vLLM 0.32 and 0.33, v1/core/sched/scheduler.py, distributed/kv_transfer/kv_transfer_state.py and
distributed/kv_transfer/kv_connector/utils.py in vllm.
"""

from typing import Final

from vllm.distributed.kv_transfer import kv_transfer_state
from vllm.distributed.kv_transfer.kv_connector.utils import KVOutputAggregator
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1
from vllm.v1.core.sched.scheduler import Scheduler

__all__ = ["Scheduler", "SchedulersConnection", "process_connector", "set_process_connector"]

_OF_A_CONNECTOR: Final = ("connector", "connector_prefix_cache_stats", "_kv_fetch_stages")
"""What is None in a scheduler without one."""


def process_connector() -> KVConnectorBase_V1 | None:
    """Return this process's connector; vLLM's own function refuses where there is none."""
    return kv_transfer_state._KV_CONNECTOR_AGENT


def set_process_connector(connector: KVConnectorBase_V1 | None) -> None:
    """Put a connector in, or take it out; vLLM's only way is to end it."""
    kv_transfer_state._KV_CONNECTOR_AGENT = connector


class SchedulersConnection:
    """A scheduler and its connector."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._parts = {name: getattr(scheduler, name) for name in _OF_A_CONNECTOR}

    def switch(self, *, connected: bool) -> None:
        """Take the connector out, or put it back; the engine must be at rest."""
        for name, part in self._parts.items():
            setattr(self._scheduler, name, part if connected else None)
        KVOutputAggregator.aggregate = _aggregate if connected else _pass_on


_aggregate = KVOutputAggregator.aggregate


def _pass_on(_self: KVOutputAggregator, outputs: list[object], output_rank: int = 0) -> object:
    """Do what vLLM's executor does without a connector."""
    return outputs[output_rank]
