"""Generated agents, and what their requests would say."""

import json
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from tests.unit.scorer.simulate.pools import asked, pool, trace

from kvtier_common.hints import NO_HINTS, Hints, Priority
from kvtier_scorer.simulate.agents import AgentsWorkload, agents
from kvtier_scorer.simulate.compare import run_policy
from kvtier_scorer.simulate.hinting import GRACE_S, partly_false, pauses_s, true_hints, with_hints
from kvtier_scorer.simulate.policies import ROUND_ROBIN
from kvtier_scorer.simulate.tenants import FLOOD, STEADY, TenantsWorkload, tenants
from kvtier_scorer.simulate.trace import TraceError, build_trace
from kvtier_scorer.simulate.trace_files import parse_trace

WORKLOAD = AgentsWorkload(sessions=6, requests=300, fork_chance=0.2)


def test_sessions_grow_by_turns_after_pauses_within_the_bounds_and_sub_agents_go_on_from_a_prompt() -> None:
    found = list(agents(WORKLOAD, 1))
    assert found == list(agents(WORKLOAD, 1)) != list(agents(WORKLOAD, 2))
    assert all(before.time_s <= after.time_s for before, after in pairwise(found))  # type: ignore[operator]
    assert {request.segments[0].key for request in found} == {"system"}
    last_s = {request.segments: request.time_s for request in reversed(found)}
    went_on = 0
    for request in found:
        if (before_s := last_s.get(request.segments[:-1])) is not None and request.time_s is not None:
            went_on += 1
            assert request.time_s - before_s >= WORKLOAD.pause_s[0] - 1e-9
    assert went_on > len(found) / 2
    begun = [request.segments[:-1] for request in found if len(request.segments) > 2]
    assert len(set(begun)) < len(begun)  # of one prompt several went on


@pytest.mark.parametrize("system_tokens", [40, 9_000])
def test_a_pause_is_until_half_of_the_prompt_is_asked_again_and_not_until_its_system_prompt_is(
    system_tokens: int,
) -> None:
    system = ("system", system_tokens)
    found = trace(
        asked(system, ("a", 100), at_s=0.0),
        asked(system, ("b", 100), at_s=1.0),
        asked(system, ("a", 100), ("a2", 10), at_s=30.0),
    )
    assert pauses_s(found).tolist() == [30.0, inf, inf]
    said = true_hints(found)
    assert said[0] == Hints(retain_s=30.0 + GRACE_S)
    assert said[1] == said[2] == Hints(priority=Priority.LOW)


def test_pauses_of_agents_are_those_of_their_own_session_however_long_the_system_prompt_is() -> None:
    short, long = (
        build_trace("a", agents(replace(WORKLOAD, system_tokens=tokens), 1)) for tokens in (1, 100_000)
    )
    assert pauses_s(short).tolist() == pauses_s(long).tolist()


def test_blocks_of_a_prompt_that_is_cut_off_in_one_are_asked_again_by_the_next_turn() -> None:
    def line(at_s: int, blocks: list[int], last_tokens: int) -> str:
        tokens = 512 * (len(blocks) - 1) + last_tokens
        return json.dumps(
            {"timestamp": 1000 * at_s, "input_length": tokens, "output_length": 1, "hash_ids": blocks}
        )

    # two sessions behind 20 blocks that both begin with
    stem = list(range(20))
    lines = [
        line(0, [*stem, 100, 101], 50),
        line(1, [*stem, 200, 201], 60),
        line(30, [*stem, 100, 102, 103], 70),
        line(50, [*stem, 200, 202, 203], 80),
    ]
    assert pauses_s(parse_trace("t", "\n".join(lines))).tolist() == [30.0, 49.0, inf, inf]


def test_whose_a_request_is_and_that_it_is_never_stored_stays_whatever_else_is_said() -> None:
    own = Hints(tenant="a", never_store=True)
    found = with_hints(trace(*(asked(("s", 40), at_s=float(at)) for at in range(20))), [own] * 20)
    for said in (true_hints(found, error=0.5), partly_false(true_hints(found), 1.0)):
        assert all((hints.tenant, hints.never_store) == ("a", True) for hints in said)


def test_without_times_there_are_no_pauses() -> None:
    with pytest.raises(TraceError, match="has no times"):
        true_hints(trace(asked(("s", 40)), concurrency=1))


def test_what_is_never_to_be_stored_is_found_on_the_device_alone() -> None:
    found = trace(*(asked((name, 640), at_s=10.0 * place) for place, name in enumerate("aba")))
    where = pool(1, gpu=50, cpu=200)
    stored = run_policy(ROUND_ROBIN, found, where)
    unstored = run_policy(ROUND_ROBIN, with_hints(found, [Hints(never_store=True)] * 3), where)
    assert stored.hit_tokens[1].sum() > 0 == unstored.hit_tokens[1].sum()


def test_saying_nothing_changes_nothing() -> None:
    found = build_trace("a", agents(WORKLOAD, 1))
    where = pool(2, gpu=4000, cpu=9000)
    silent = run_policy(ROUND_ROBIN, found, where)
    # one request's share of nobody known puts the trace on the way of hinted ones
    other = run_policy(ROUND_ROBIN, with_hints(found, [Hints(tenant="x"), *[NO_HINTS] * 299]), where)
    assert (silent.hit_tokens == other.hit_tokens).all()


def test_a_tenants_requests_are_the_same_with_a_flood_beside_them() -> None:
    workload = TenantsWorkload(steady=WORKLOAD, flood_begins_s=10.0)
    both, alone = list(tenants(workload, 3)), list(tenants(workload, 3, alone=True))
    assert [request for request in both if request.hints.tenant == STEADY] == alone
    flood = [request for request in both if request.hints.tenant == FLOOD]
    assert flood
    assert min(request.time_s for request in flood if request.time_s is not None) >= 10.0
    assert len({request.segments for request in flood}) == len(flood)
