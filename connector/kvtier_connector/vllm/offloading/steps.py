"""A step as scheduler and workers tell each other of it, and how fast it computes a prompt."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Final

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorHandshakeMetadata,
    KVConnectorWorkerMetadata,
)
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.kv_offload.base import LoadStoreSpec

from kvtier_connector.core.behind.break_even import PrefillModel, TokenSpan
from kvtier_connector.core.copies.arrivals import Tickets
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.core.region.region import RegionOffer
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorMetadata, OffloadingWorkerMetadata
from kvtier_connector.vllm.upstream.offloading import UpstreamScheduler

_LEAST_TOKENS: Final = 256
"""A step of so many tokens computes a prompt; decoding steps have one token a request."""


@dataclass(frozen=True, slots=True)
class SlotSpec(LoadStoreSpec):  # type: ignore[misc] # vLLM has no types
    """The region's side of a transfer."""

    slots: Slots  # one per chunk, in the order of the keys
    # tickets of the reads from disk that are not known to have ended, 0 for other slots; None if there are
    # none
    tickets: Tickets | None = None
    is_sync: bool = False  # A load that the step needs before it computes


@dataclass
class StepMetadata(OffloadingConnectorMetadata):  # type: ignore[misc] # vLLM has no types
    """What the workers are told of a step, and its number, which they send back with what they have done."""

    step: int = 0


def with_step(orders: OffloadingConnectorMetadata, step: int) -> StepMetadata:
    """Return a step's orders with its number."""
    return StepMetadata(**{field.name: getattr(orders, field.name) for field in fields(orders)}, step=step)


@dataclass
class KVTierWorkerMetadata(OffloadingWorkerMetadata):  # type: ignore[misc] # vLLM has no types
    """Upstream's report of completed jobs, which of them failed on any worker, and the steps that were done.

    Upstream has no channel for a failure: its worker asserts success.
    """

    failed_jobs: set[int] = field(default_factory=set)
    steps: frozenset[int] = frozenset()

    def aggregate(self, other: KVConnectorWorkerMetadata) -> KVConnectorWorkerMetadata:
        """Merge another worker's report of the same step."""
        merged = super().aggregate(other)
        failed = self.failed_jobs | getattr(other, "failed_jobs", set())
        steps = self.steps | getattr(other, "steps", frozenset())
        return KVTierWorkerMetadata(merged.completed_jobs, merged.transfer_stats, failed, steps)


@dataclass(frozen=True, slots=True)
class WorkerOffer(KVConnectorHandshakeMetadata):  # type: ignore[misc] # vLLM has no types
    """What a worker tells the scheduler's process at start."""

    growth: str  # path of the words in which it tells how far its slice has grown
    region: RegionOffer | None = None  # the region, of the first worker where there is a disk tier


class _NoTransfers(OffloadingConnectorMetadata):  # type: ignore[misc] # vLLM has no types
    """Has a worker recognise a quiet step by identity; between processes it travels as its name."""

    def __reduce__(self) -> str:
        return "NO_TRANSFERS"


NO_TRANSFERS: Final = _NoTransfers(load_jobs={}, store_jobs={}, jobs_to_flush=None)
"""A step's orders to the workers when there are none."""


def or_none(orders: OffloadingConnectorMetadata) -> OffloadingConnectorMetadata:
    """Return a step's orders, or `NO_TRANSFERS` where they are none."""
    return orders if orders.load_jobs or orders.store_jobs or orders.jobs_to_flush else NO_TRANSFERS


def with_transfers(
    step: SchedulerOutput, upstream: UpstreamScheduler, chunk_gcd_tokens: int
) -> SchedulerOutput | None:
    """Return the step with only those requests that vLLM has to look at, or None if it has nothing to do.

    Upstream looks at every running request in every step. A decoding request has something to store only when
    a chunk fills up, and new blocks only when one did. What is put off by looking at it no sooner is not
    lost: upstream stores all chunks that a request has by then, at the latest when it ends. At multiples of
    `chunk_gcd_tokens` a chunk of some KV cache group may be full.
    """
    cached = step.scheduled_cached_reqs
    scheduled = step.num_scheduled_tokens
    busy = [
        place
        for place, (request_id, blocks, computed) in enumerate(
            zip(cached.req_ids, cached.new_block_ids, cached.num_computed_tokens, strict=True)
        )
        if blocks
        or computed % chunk_gcd_tokens + scheduled[request_id] >= chunk_gcd_tokens
        or request_id in cached.resumed_req_ids
    ]
    if not (busy or _changes_requests(step) or upstream.has_orders):
        return None
    if len(busy) == len(cached.req_ids):
        return step
    request_ids = [cached.req_ids[place] for place in busy]
    return replace(
        step,
        scheduled_cached_reqs=replace(
            cached,
            req_ids=request_ids,
            new_block_ids=[cached.new_block_ids[place] for place in busy],
            num_computed_tokens=[cached.num_computed_tokens[place] for place in busy],
            num_output_tokens=[cached.num_output_tokens[place] for place in busy],
        ),
        num_scheduled_tokens={
            request_id: scheduled[request_id]
            for request_id in [*(new.req_id for new in step.scheduled_new_reqs), *request_ids]
        },
    )


def _changes_requests(step: SchedulerOutput) -> bool:
    """Tell whether a request begins, ends, gives way or hands blocks over."""
    state = step.kv_connector_block_state
    return bool(
        step.scheduled_new_reqs
        or step.finished_req_ids
        or step.preempted_req_ids
        or step.kv_cache_block_copies
        or (state and state.boundary_state_offloads)
    )


class PrefillClock:
    """Measures steps that compute much, from being planned or from the end of the one before, to their end.

    Such a step is given a number, which the workers send back. Steps without work send nothing back, and with
    asynchronous scheduling the next step is planned before the last has ended: what comes back cannot be told
    to be a step's by its turn.
    """

    def __init__(self, model: PrefillModel) -> None:
        self._model = model
        self._begun = dict[int, tuple[TokenSpan, float]]()
        self._last_number = 0
        self._last_end_s = 0.0

    def begin(self, output: SchedulerOutput) -> int:
        """Return the number of a step that is worth measuring, or 0."""
        if output.total_num_scheduled_tokens < _LEAST_TOKENS:
            return 0
        self._last_number += 1
        computed = sum(_parts(output), TokenSpan(0, 0.0))
        self._begun[self._last_number] = computed, time.monotonic()
        return self._last_number

    def forget(self, number: int) -> None:
        """Leave a step out: it waits for something else, too."""
        self._begun.pop(number, None)

    def end(self, numbers: frozenset[int]) -> None:
        """Take note of a step's end, and of the numbers that came with it."""
        now_s = time.monotonic()
        for number in numbers:
            computed, start_s = self._begun.pop(number, (TokenSpan(0, 0.0), now_s))
            self._model.add(computed, now_s - max(start_s, self._last_end_s))
        self._last_end_s = now_s


def _parts(output: SchedulerOutput) -> Iterator[TokenSpan]:
    """Yield what is computed of each request."""
    cached = output.scheduled_cached_reqs
    before = dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
    before |= {request.req_id: request.num_computed_tokens for request in output.scheduled_new_reqs}
    for request_id, tokens in output.num_scheduled_tokens.items():
        first = before.get(request_id, 0)
        yield TokenSpan.of(first, first + tokens)
