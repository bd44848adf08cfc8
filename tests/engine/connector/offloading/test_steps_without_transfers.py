"""Which requests of a step upstream's scheduler has to look at; no engine is started."""

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

GRAIN = 32
# TokenSpan tokens, tokens of the step and new blocks of requests that decode, and which give the tier work.
DECODING = {
    "rests": (40, 1, None),
    "fills a chunk": (63, 1, None),
    "gets a block": (64, 1, ([7],)),
    "begins a chunk": (96, 1, None),
    "drafts past a chunk's end": (60, 5, None),
}
BUSY = ["fills a chunk", "gets a block", "drafts past a chunk's end"]


def step(names: list[str], **other: object) -> Any:  # noqa: ANN401 - vLLM publishes no types
    from vllm.v1.core.sched.output import CachedRequestData, SchedulerOutput  # noqa: PLC0415 - takes seconds

    found = [DECODING[name] for name in names]
    cached = CachedRequestData(
        req_ids=names,
        resumed_req_ids=set(),
        new_token_ids=[],
        all_token_ids={},
        new_block_ids=[blocks for _, _, blocks in found],
        num_computed_tokens=[computed for computed, _, _ in found],
        num_output_tokens=[1] * len(names),
    )
    tokens = {name: DECODING[name][1] for name in names}
    return SchedulerOutput(
        **{
            "scheduled_new_reqs": [],
            "scheduled_cached_reqs": cached,
            "num_scheduled_tokens": tokens,
            "total_num_scheduled_tokens": sum(tokens.values()),
            "scheduled_spec_decode_tokens": {},
            "scheduled_encoder_inputs": {},
            "finished_req_ids": set(),
            "free_encoder_mm_hashes": [],
            **other,
        }
    )


def left(scheduled: Any, **orders: object) -> Any:  # noqa: ANN401 - as above
    from kvtier_connector.vllm.offloading.steps import with_transfers  # noqa: PLC0415 - takes seconds
    from kvtier_connector.vllm.upstream.offloading import ATTRIBUTES, UpstreamScheduler  # noqa: PLC0415 - as above

    none: dict[str, object] = dict.fromkeys(ATTRIBUTES)
    upstream = UpstreamScheduler(SimpleNamespace(**none | orders))
    return with_transfers(scheduled, upstream, GRAIN)


def test_only_requests_with_new_blocks_or_a_full_chunk_are_looked_at() -> None:
    part = left(step(list(DECODING)))
    assert part.scheduled_cached_reqs.req_ids == list(part.num_scheduled_tokens) == BUSY
    assert part.scheduled_cached_reqs.new_block_ids == [None, ([7],), None]
    assert part.scheduled_cached_reqs.num_computed_tokens == [63, 64, 60]


def test_a_step_that_is_all_work_is_passed_on_as_it_is() -> None:
    whole = step(BUSY)
    assert left(whole) is whole


def test_a_resumed_request_is_looked_at() -> None:
    resumed = step(["rests"])
    resumed.scheduled_cached_reqs.resumed_req_ids.add("rests")
    assert left(resumed).scheduled_cached_reqs.req_ids == ["rests"]


def test_a_new_request_stays_beside_those_that_rest() -> None:
    new = SimpleNamespace(req_id="new")
    scheduled = step(["rests"], scheduled_new_reqs=[new], num_scheduled_tokens={"new": 512, "rests": 1})
    part = left(scheduled)
    assert part.scheduled_new_reqs == [new]
    assert (part.num_scheduled_tokens, part.scheduled_cached_reqs.req_ids) == ({"new": 512}, [])


@pytest.mark.parametrize(
    "event",
    [
        {"finished_req_ids": {"a"}},
        {"preempted_req_ids": {"a"}},
        {"kv_cache_block_copies": [object()]},
        {"kv_connector_block_state": SimpleNamespace(boundary_state_offloads={"a": [(0, 1, 32)]})},
    ],
    ids=lambda event: next(iter(event)),
)
def test_what_ends_or_moves_is_passed_on_without_those_that_rest(event: dict[str, object]) -> None:
    part = left(step(["rests"], **event))
    assert part.num_scheduled_tokens == {}
    assert {name: getattr(part, name) for name in event} == event


@pytest.mark.parametrize(
    "orders",
    [
        {"_current_batch_load_jobs": {1: object()}},
        {"_current_batch_jobs_to_flush": {1}},
        {"_current_batch_allocated_block_ids": {5}},
    ],
    ids=lambda orders: next(iter(orders)),
)
def test_what_upstream_has_to_send_is_sent(orders: dict[str, object]) -> None:
    assert left(step(["rests"]), **orders) is not None


def test_a_quiet_step_is_known_to_the_workers_by_identity() -> None:
    from kvtier_connector.vllm.offloading.steps import NO_TRANSFERS  # noqa: PLC0415 - takes seconds

    assert left(step(["rests", "begins a chunk"])) is None
    assert pickle.loads(pickle.dumps(NO_TRANSFERS)) is NO_TRANSFERS  # noqa: S301 - our own
