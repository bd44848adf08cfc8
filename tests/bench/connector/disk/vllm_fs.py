"""vLLM's own disk tier (v1/kv_offload/tiering/fs), driven as its TieringOffloadingManager drives it."""

import hashlib
import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Final

import numpy as np
from tests.bench.connector.disk.work import Op, Work
from vllm.v1.kv_offload.base import ReqContext, make_offload_key
from vllm.v1.kv_offload.config import (
    OffloadingCacheConfig,
    OffloadingConfig,
    OffloadingGroupConfig,
    OffloadingModelConfig,
    OffloadingParallelConfig,
)
from vllm.v1.kv_offload.cpu.shared_offload_region import SharedOffloadRegion
from vllm.v1.kv_offload.tiering.base import TransferJob
from vllm.v1.kv_offload.tiering.fs.manager import FileSystemTierManager

_JOBS: Final = {"one prompt": 1, "16 prompts": 16}
_TOKENS_PER_BLOCK: Final = 16


class VLLMFileSystem:
    """Moves blocks between vLLM's own CPU region and files, with vLLM's default numbers of threads.

    vLLM makes one job of all the chunks that a request needs in a step, and a thread takes a job's chunks one
    after the other: so one prompt at a time, and as many at a time as there are threads for a direction.
    """

    variants = tuple(_JOBS)

    def __init__(self, work: Work) -> None:
        self._region = SharedOffloadRegion(
            engine_id=f"kvtier-bench-{os.getpid()}",
            num_chunks=work.sample_blocks,
            rank=None,
            kv_bytes_per_chunk=work.block_bytes,
            cpu_page_size=work.block_bytes,
            barrier=lambda: None,  # so that its name is removed at once
        )
        view = self._region.create_kv_memoryview()
        flat = view.cast("B")
        size = work.block_bytes
        self._memories = [flat[place * size : (place + 1) * size] for place in range(work.sample_blocks)]
        spec = SimpleNamespace(config=_config(work), blocks_per_chunk=1, kv_events_config=None)
        self._tier = FileSystemTierManager(spec, view, "fs", work.folder)
        self._keys = [_key(block) for block in range(work.blocks)]
        self._next_job = 0

    def before(self, op: Op, blocks: Sequence[int]) -> list[memoryview]:
        """Remove the files of blocks to be stored: vLLM would keep an old one and write nothing."""
        if op == "load":
            return []
        for block in blocks:
            path = self._tier.file_mapper.get_file_name(self._keys[block])
            if os.path.exists(path):  # noqa: PTH110 - vLLM's paths are plain text
                os.unlink(path)  # noqa: PTH108 - as above
        os.sync()
        return self._memories[: len(blocks)]

    def run(self, op: Op, blocks: Sequence[int], variant: str) -> None:
        """Submit the blocks as jobs, and wait for them all."""
        submit = self._tier.submit_store if op == "store" else self._tier.submit_load
        places = np.arange(len(blocks), dtype=np.int32)
        for part in np.array_split(places, _JOBS[variant]):
            if part.size:
                submit(self._job([self._keys[blocks[place]] for place in part], part, loads=op == "load"))
        self._tier.drain_jobs()
        if failed := [job.job_id for job in self._tier.get_finished_jobs() if not job.success]:
            raise OSError(f"vLLM's jobs {failed} failed")

    def loaded(self) -> list[memoryview]:
        """Return the region's first blocks."""
        return self._memories

    def close(self) -> None:
        """End the threads."""
        self._tier.shutdown()

    def _job(self, keys: list[bytes], places: np.ndarray, *, loads: bool) -> TransferJob:
        self._next_job += 1
        return TransferJob(
            job_id=self._next_job,
            keys=keys,
            chunk_ids=places,
            is_promotion=loads,
            req_context=ReqContext(req_id=str(self._next_job)),
        )


def _key(block: int) -> bytes:
    key: bytes = make_offload_key(hashlib.sha256(block.to_bytes(8, "big")).digest(), 0)
    return key


def _config(work: Work) -> OffloadingConfig:
    return OffloadingConfig(
        groups=(OffloadingGroupConfig(_TOKENS_PER_BLOCK, ("layer",), 0),),
        worker_kv_bytes_per_block=work.block_bytes,
        enable_kv_cache_events=False,
        extra_config={},
        engine_id="kvtier-bench",
        model=OffloadingModelConfig("bench", "bfloat16"),
        cache=OffloadingCacheConfig(_TOKENS_PER_BLOCK, 1),
        parallel=OffloadingParallelConfig(
            rank=0,
            world_size=1,
            tp_size=1,
            pp_size=1,
            pcp_size=1,
            dcp_size=1,
            data_parallel_index=0,
            data_parallel_size=1,
            data_parallel_rank_local=None,
            is_parallelism_agnostic=True,
        ),
    )
