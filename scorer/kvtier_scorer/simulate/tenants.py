"""Two tenants' traffic, generated: agents of one, and another that floods with prompts nobody asks again."""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from kvtier_common.hints import Hints
from kvtier_scorer.simulate.agents import MODEL, AgentsWorkload, agents
from kvtier_scorer.simulate.trace import Segment, TraceRequest

STEADY: Final = "steady"
FLOOD: Final = "flood"


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantsWorkload:
    """How the two ask; ranges are even, ends included."""

    steady: AgentsWorkload = field(
        default_factory=lambda: AgentsWorkload(sessions=20, requests=2_000, pause_s=(5.0, 60.0))
    )
    flood_begins_s: float = 300.0  # from the start of the trace; it lasts to the end
    flood_per_s: float = 2.0  # prompts a second, at random times
    flood_tokens: tuple[int, int] = (8_192, 32_768)  # of each


def tenants(workload: TenantsWorkload, seed: int, *, alone: bool = False) -> Iterator[TraceRequest]:
    """Requests of both in the order of time, or of the steady one `alone`; each says whose it is."""
    steady = [replace(request, hints=Hints(tenant=STEADY)) for request in agents(workload.steady, seed)]
    flood = () if alone else _flood(workload, seed, steady[-1].time_s or 0.0)
    return heapq.merge(steady, flood, key=lambda request: request.time_s or 0.0)


def _flood(workload: TenantsWorkload, seed: int, end_s: float) -> Iterator[TraceRequest]:
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    time_s = workload.flood_begins_s
    for number in count():
        time_s += chance.expovariate(workload.flood_per_s)
        if time_s > end_s:
            return
        prompt = Segment(("flood", number), chance.randint(*workload.flood_tokens))
        yield TraceRequest(MODEL, (prompt,), 1, time_s, Hints(tenant=FLOOD))
