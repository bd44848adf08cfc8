"""A connector whose loads fail while a file says so; vLLM's worker processes import it by name."""

import os
from pathlib import Path

import torch

from kvtier_connector.core.copyplan import CopyPlan
from kvtier_connector.vllm.connector import KVTierConnector as RealConnector
from kvtier_connector.vllm.copier_memcpy import MemcpyCopier


class FaultyCopier(MemcpyCopier):
    """Fails loads while `<folder>/fail` exists, and counts the attempts in `<folder>/attempts`."""

    def start(self, job_id: int, plan: CopyPlan, *, to_device: bool) -> None:
        folder = Path(os.environ["KVTIER_TEST_FAULTS"])
        if to_device and (folder / "fail").exists():
            with (folder / "attempts").open("a") as attempts:
                attempts.write(f"{job_id}\n")
            raise OSError("the test's fault")
        super().start(job_id, plan, to_device=to_device)


class KVTierConnector(RealConnector):
    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        super().register_kv_caches(kv_caches)
        self._worker._copier.close()
        self._worker._copier = FaultyCopier()
