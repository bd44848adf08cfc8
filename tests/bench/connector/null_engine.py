"""vLLM's scheduler and a connector's two sides around a device that is not there.

A model's steps take no time, copies end as soon as they are queued and move nothing: what is left is the work
of the host. The connectors queue their copies as on a GPU, with their own code down to the driver's calls.
"""

import contextlib
import hashlib
import mmap
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Protocol, cast
from unittest.mock import patch

import torch
from tests.bench.connector.switched_engine import EMPTY
from vllm.config import CUDAGraphMode, KVTransferConfig, VllmConfig
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole
from vllm.engine.arg_utils import EngineArgs
from vllm.forward_context import override_forward_context
from vllm.platforms import current_platform
from vllm.sampling_params import SamplingParams
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec, KVCacheTensor
from vllm.v1.kv_offload.cpu import gpu_worker
from vllm.v1.kv_offload.cpu.spec import CPUOffloadingSpec
from vllm.v1.outputs import KVConnectorOutput, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

from kvtier_connector.bench.model import write_bench_config
from kvtier_connector.config import CUDA_CHUNK_TOKENS, ConnectorConfig, Policy, kv_transfer_config
from kvtier_connector.core.region.growth import Grown, GrowthWords
from kvtier_connector.vllm.copies import copier_cuda
from kvtier_connector.vllm.offloading import sync_loads
from kvtier_connector.vllm.offloading.worker import KVTierWorker, canonical_layout
from kvtier_connector.vllm.spec import KVTierOffloadingSpec

BLOCK_TOKENS: Final = 16
LAYERS: Final = 32
STEP_TOKENS: Final = 8192
LONGEST_TOKENS: Final = 16384
MOST_REQUESTS: Final = 64
_DEVICE_BLOCKS: Final = (MOST_REQUESTS + 1) * LONGEST_TOKENS // BLOCK_TOKENS
_TIER_BLOCKS: Final = 3 * _DEVICE_BLOCKS // 2
_HEADS: Final = 8
_HEAD_SIZE: Final = 128
_NO_RESERVE: Final = 0x4000  # MAP_NORESERVE of Linux
_REGION_ADDRESS: Final = 1 << 40
_NAMES: Final = [f"model.layers.{number}.attn" for number in range(LAYERS)]


@dataclass(frozen=True, slots=True)
class Side:
    """A connector, and the layout of the KV caches that it asks of vLLM on a GPU."""

    transfer: dict[str, Any]
    is_block_major: bool


def sides() -> dict[str, Side]:
    """Return what is compared, by name: our connector as it is planned for a GPU, and with others' chunks."""
    tier_bytes = _TIER_BLOCKS * LAYERS * _page_bytes()
    chunk_blocks = CUDA_CHUNK_TOKENS // BLOCK_TOKENS

    def ours(blocks_per_chunk: int, **other: Any) -> dict[str, Any]:  # noqa: ANN401 - settings
        tier = ConnectorConfig(
            cpu_capacity_bytes=tier_bytes,
            blocks_per_chunk=blocks_per_chunk,
            hugepages=Policy.NEVER,
            **other,
        )
        return kv_transfer_config(tier)

    vllm = {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"cpu_bytes_to_use": tier_bytes},
    }
    return {
        "empty": Side(EMPTY, is_block_major=False),
        "vllm": Side(vllm, is_block_major=False),
        "kvtier": Side(ours(chunk_blocks), is_block_major=True),
        "kvtier_apart": Side(ours(chunk_blocks, layered_loads=False), is_block_major=True),
        "kvtier_blocks": Side(ours(1), is_block_major=True),
    }


class Meter(Protocol):
    """Is told when a connector is at work."""

    def begin(self, part: str) -> None:
        """The scheduler's or the worker's part begins."""

    def end(self) -> None:
        """It has ended."""


class NullEngine:
    """One engine: `step` is what vLLM's engine does in one round."""

    def __init__(self, side: Side, meter: Meter, scratch: Path) -> None:
        self._meter = meter
        config = _vllm_config(side, scratch)
        kv_cache = _kv_cache_config(side)
        self._scheduler = AsyncScheduler(
            vllm_config=config,
            kv_cache_config=kv_cache,
            structured_output_manager=StructuredOutputManager(config),
            block_size=BLOCK_TOKENS,
            log_stats=True,
        )
        self._worker = KVConnectorFactory.create_connector(config, KVConnectorRole.WORKER, kv_cache)
        self._worker.register_kv_caches(_kv_caches(side))
        handshake = self._worker.get_handshake_metadata()
        if handshake is not None:
            self._scheduler.connector.set_xfer_handshake_metadata({0: handshake})
        for name in _HOOKS:
            setattr(self._scheduler.connector, name, self._metered(getattr(self._scheduler.connector, name)))
        self.steps = 0
        """Rounds so far."""
        self._found = Counter[str]()

    def add(self, requests: Sequence[Request]) -> None:
        """Have requests wait."""
        for request in requests:
            self._scheduler.add_request(request)

    def step(self) -> None:
        """Schedule a step, have the worker do its part of it, and take what it says."""
        self.steps += 1
        scheduled = self._scheduler.schedule()
        ids = list(scheduled.num_scheduled_tokens)
        output = ModelRunnerOutput(
            req_ids=ids,
            req_id_to_index={name: place for place, name in enumerate(ids)},
            sampled_token_ids=[
                [] if self._scheduler.requests[name].is_prefill_chunk else [7] for name in ids
            ],
            kv_connector_output=self._work(scheduled),
        )
        for told in self._scheduler.update_from_output(scheduled, output).values():
            if (stats := told.scheduler_stats) is not None:
                self._found["device"] += stats.prefix_cache_stats.hits
                self._found["tier"] += stats.connector_prefix_cache_stats.hits

    def run(self) -> None:
        """Step until nothing is left to do."""
        while self._scheduler.has_requests():
            self.step()

    def run_until_all_decode(self) -> None:
        """Step until every request has its first token."""
        while any(
            request.status is not RequestStatus.RUNNING or not request.num_output_tokens
            for request in self._scheduler.requests.values()
        ):
            self.step()

    def abort(self) -> None:
        """End all requests."""
        self._scheduler.finish_requests(list(self._scheduler.requests), RequestStatus.FINISHED_ABORTED)
        self.run()

    def forget_device(self) -> None:
        """Empty the device's prefix cache. Raises RuntimeError: something still uses it."""
        if not self._scheduler.reset_prefix_cache():
            raise RuntimeError("the device's cache is in use")

    def take_found(self) -> dict[str, int]:
        """Return how many tokens were found on the device and in the tier since the last call."""
        found, self._found = self._found, Counter()
        return dict(found)

    def _metered(self, hook: Any) -> Any:  # noqa: ANN401 - of any signature
        meter = self._meter

        def metered(*args: Any) -> Any:  # noqa: ANN401 - as above
            meter.begin("scheduler")
            result = hook(*args)
            if hasattr(result, "__next__"):
                result = list(result)
            meter.end()
            return result

        return metered

    def _work(self, scheduled: Any) -> KVConnectorOutput:  # noqa: ANN401 - vLLM has no types
        """Do what vLLM's model runner does (vllm/v1/worker/gpu/kv_connector.py, ActiveKVConnector)."""
        computes = bool(scheduled.total_num_scheduled_tokens)
        context = SimpleNamespace(
            attn_metadata=self if computes else None, cudagraph_runtime_mode=CUDAGraphMode.PIECEWISE
        )
        output = KVConnectorOutput()
        with override_forward_context(context):
            self._work_within(context, scheduled, output)
        return output

    def _work_within(self, context: Any, scheduled: Any, output: KVConnectorOutput) -> None:  # noqa: ANN401 - as above
        worker, meter = self._worker, self._meter
        meter.begin("worker")
        worker.handle_preemptions(scheduled.kv_connector_metadata)
        worker.bind_connector_metadata(scheduled.kv_connector_metadata)
        if scheduled.has_sync_kv_loads:
            worker.start_load_kv(context)
        if context.attn_metadata is not None:
            for name in _NAMES:
                worker.wait_for_layer_load(name)
                worker.save_kv_layer(name, None, None)
        if not scheduled.has_sync_kv_loads:
            worker.start_load_kv(context)
        worker.wait_for_save()
        results = worker.get_transfer_results(scheduled.finished_req_ids)
        output.finished_sending = results.finished_sending or None
        output.finished_recving = results.finished_recving or None
        output.failed_recving = results.failed_recving
        output.invalid_block_ids = worker.get_block_ids_with_load_errors()
        output.kv_connector_stats = worker.get_kv_connector_stats()
        output.kv_cache_events = worker.get_kv_connector_kv_cache_events()
        output.kv_connector_worker_meta = worker.build_connector_worker_meta()
        worker.clear_connector_metadata()
        meter.end()


_HOOKS: Final = (
    "on_new_request",
    "get_num_new_matched_tokens",
    "get_external_cache_hit_sources",
    "update_state_after_alloc",
    "build_connector_meta",
    "update_connector_output",
    "request_finished",
    "request_finished_all_groups",
    "get_kv_connector_stats",
    "take_events",
    "has_pending_push_work",
    "has_pending_block_frees",
)
"""What a scheduler calls of its connector; those that vLLM has."""


def prompt(name: str, seed: int, tokens: int, output_tokens: int) -> Request:
    """Return a request whose prompt has blocks of its own for each seed."""
    return Request(
        request_id=name,
        prompt_token_ids=[seed] * tokens,
        sampling_params=SamplingParams(max_tokens=output_tokens, ignore_eos=True),
        pooling_params=None,
        block_hasher=_hash_blocks,
    )


def _hash_blocks(request: Request) -> list[bytes]:
    """Name blocks by seed and place: hashing tokens takes vLLM time that is no connector's."""
    seed = request.prompt_token_ids[0]
    places = range(len(request.block_hashes), request.num_tokens // BLOCK_TOKENS)
    return [hashlib.sha256(b"%d %d" % (seed, place)).digest() for place in places]


# ---- what is not there ----


class _NullStream:
    """A stream in which everything has happened. All of it is C, as PyTorch's is, and counts as no call."""

    wait_stream = staticmethod(id)
    wait_event = staticmethod(id)
    synchronize = staticmethod(bool)


class _NullEvent:
    record = staticmethod(id)
    query = staticmethod(object)
    synchronize = staticmethod(bool)
    elapsed_time = staticmethod(bool)

    def __init__(self, enable_timing: bool = False) -> None: ...


_NO_COPIES: Final = partial(partial, bool)
"""Takes anything, does nothing, and is C."""


class _DeviceTensor(torch.Tensor):  # type: ignore[misc] # PyTorch has no types here
    is_cuda = True


@contextlib.contextmanager
def null_device() -> Iterator[None]:
    """Have what is made of CUDA within be nothing, and both connectors' workers copy with that."""
    stream = _NullStream()
    no_stream = {
        "Stream": lambda: stream,
        "Event": _NullEvent,
        "current_stream": lambda: stream,
        "stream": lambda _: contextlib.nullcontext(),
    }
    with contextlib.ExitStack() as stack:
        for name, value in no_stream.items():
            stack.enter_context(patch.object(torch.cuda, name, value))
        for name in ("Stream", "current_stream", "stream"):
            stack.enter_context(patch.object(current_platform, name, no_stream[name], create=True))
        stack.enter_context(patch.object(torch, "Event", _NullEvent))
        stack.enter_context(patch.object(gpu_worker.ops, "swap_blocks_batch", _NO_COPIES))
        stack.enter_context(patch.object(KVTierOffloadingSpec, "get_worker", _our_worker))
        gpu = SimpleNamespace(is_cpu=lambda: False)
        stack.enter_context(patch.object(sync_loads, "current_platform", gpu))
        stack.enter_context(patch.object(CPUOffloadingSpec, "get_worker", _vllms_worker))
        yield


def _our_worker(spec: Any, kv_caches: Any) -> KVTierWorker:  # noqa: ANN401 - vLLM has no types
    """Make our worker on a region that is not there and has grown."""
    words, spec.growth_path = GrowthWords.create()
    words.tell(Grown(spec.geometry.slots, 0, is_over=True))
    copier = copier_cuda.CudaCopier()
    layout = canonical_layout(
        kv_caches,
        blocks_per_chunk=spec.blocks_per_chunk,
        block_bytes=spec.config.worker_kv_bytes_per_block,
        slot_bytes=spec.geometry.slot_bytes,
        region_address=_REGION_ADDRESS,
    )
    layered = spec._layerwise_gpu_loads(layout, copier)
    return KVTierWorker(layout, cast("Any", None), copier, layerwise_gpu_loads=layered)


def _vllms_worker(spec: Any, kv_caches: Any) -> Any:  # noqa: ANN401 - as above
    """Make vLLM's worker, which insists on a GPU's memory, and then let it have the plain tensors."""
    for each in kv_caches.tensors:
        each.tensor = each.tensor.as_subclass(_DeviceTensor)
    with patch.object(torch, "zeros", lambda shape, **_: _untouched(prod(shape)).view(shape)):
        worker = spec.create_worker(kv_caches)
    for handler in (worker._store_handler, worker._load_handler):
        handler.src_tensors = [each.as_subclass(torch.Tensor) for each in handler.src_tensors]
        handler.dst_tensors = [each.as_subclass(torch.Tensor) for each in handler.dst_tensors]
    return worker


def _untouched(size_bytes: int) -> torch.Tensor:
    """Return memory that takes none: nobody reads or writes it."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    return torch.frombuffer(mmap.mmap(-1, size_bytes, flags=flags), dtype=torch.int8)


def _page_bytes() -> int:
    return int(_spec().page_size_bytes)


def _spec() -> FullAttentionSpec:
    return FullAttentionSpec(
        block_size=BLOCK_TOKENS, num_kv_heads=_HEADS, head_size=_HEAD_SIZE, dtype=torch.bfloat16
    )


def _kv_cache_config(side: Side) -> KVCacheConfig:
    page = _page_bytes()
    layer_stride, block_stride = (
        (page, LAYERS * page) if side.is_block_major else (_DEVICE_BLOCKS * page, page)
    )
    return KVCacheConfig(
        num_blocks=_DEVICE_BLOCKS,
        kv_cache_tensors=[KVCacheTensor(_DEVICE_BLOCKS * LAYERS * page, _NAMES, layer_stride, block_stride)],
        kv_cache_groups=[KVCacheGroupSpec(_NAMES, _spec())],
    )


def _kv_caches(side: Side) -> dict[str, torch.Tensor]:
    """Return each layer's cache."""
    (placed,) = _kv_cache_config(side).kv_cache_tensors
    memory = _untouched(placed.size)
    shape, strides = (_DEVICE_BLOCKS, _page_bytes()), (placed.block_stride, 1)
    return {
        name: memory.as_strided(shape, strides, number * placed.layer_stride)
        for number, name in enumerate(_NAMES)
    }


_made: dict[Path, VllmConfig] = {}


def _vllm_config(side: Side, scratch: Path) -> VllmConfig:
    if scratch not in _made:
        _made[scratch] = EngineArgs(
            model=str(write_bench_config(scratch, "demo")),
            skip_tokenizer_init=True,
            max_model_len=LONGEST_TOKENS,
            max_num_batched_tokens=STEP_TOKENS,
            max_num_seqs=MOST_REQUESTS,
            block_size=BLOCK_TOKENS,
            enable_prefix_caching=True,
        ).create_engine_config()
    config = deepcopy(_made[scratch])
    config.kv_transfer_config = KVTransferConfig(**side.transfer)
    config.scheduler_config.async_scheduling = True
    config.cache_config.num_gpu_blocks = _DEVICE_BLOCKS
    return config
