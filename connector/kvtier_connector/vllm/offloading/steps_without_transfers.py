"""Steps in which a request gives the tier nothing to do, which are nearly all of them, and cost it nothing.

Upstream looks at every running request in every step. A decoding request has something to store only when
a chunk fills up, and new blocks only when one did. What is put off by looking at it no sooner is not lost:
upstream stores all chunks that a request has by then, at the latest when it ends.
"""

from dataclasses import replace
from typing import Final

from vllm.v1.core.sched.output import SchedulerOutput

from kvtier_connector.vllm.upstream.classes import OffloadingConnectorMetadata
from kvtier_connector.vllm.upstream.scheduler import UpstreamScheduler


class _NoTransfers(OffloadingConnectorMetadata):  # type: ignore[misc] # vLLM has no types
    """Has a worker recognise a quiet step by identity; between processes it travels as its name."""

    def __reduce__(self) -> str:
        return "NO_TRANSFERS"


NO_TRANSFERS: Final = _NoTransfers(load_jobs={}, store_jobs={}, jobs_to_flush=None)
"""A step's orders to the workers when there are none."""


def with_transfers(
    step: SchedulerOutput, upstream: UpstreamScheduler, chunk_gcd_tokens: int
) -> SchedulerOutput | None:
    """Return the step with only those requests that vLLM has to look at, or None if it has nothing to do.

    Args:
        step: What vLLM has scheduled.
        upstream: What looks at it.
        chunk_gcd_tokens: At whose multiples a chunk of some KV cache group may be full.
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
