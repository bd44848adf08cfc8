"""A connector whose loads fail while a file says so, and that writes down how each was done.

vLLM imports it by name.
"""

import os
from pathlib import Path

import torch
from vllm.forward_context import ForwardContext

from kvtier_connector.core.copies.copyplan import CopyPlan
from kvtier_connector.vllm.connector import KVTierConnector as RealConnector
from kvtier_connector.vllm.copies.copier import MemcpyCopier


def folder() -> Path:
    """Where a test says what is to fail, and is told what was done."""
    return Path(os.environ["KVTIER_TEST_FAULTS"])


class FaultyCopier(MemcpyCopier):
    """Fails loads while `<folder>/fail` exists."""

    def start(self, job_id: int, plan: CopyPlan, *, to_device: bool) -> None:
        if to_device and (folder() / "fail").exists():
            raise OSError("the test's fault")
        super().start(job_id, plan, to_device=to_device)


class KVTierConnector(RealConnector):
    """Writes a line into `<folder>/loads` for every load: "in step" or "apart"."""

    def start_load_kv(self, forward_context: ForwardContext, **kwargs: object) -> None:
        with (folder() / "loads").open("a") as loads:
            for _ in self._connector_metadata.load_jobs:
                loads.write("apart\n" if forward_context.attn_metadata is None else "in step\n")
        super().start_load_kv(forward_context, **kwargs)

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        super().register_kv_caches(kv_caches)
        self._worker._copier.close()
        self._worker._copier = FaultyCopier()
