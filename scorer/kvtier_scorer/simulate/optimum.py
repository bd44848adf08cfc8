"""The most that any policy could have found: a bound on hit tokens.

Take one cache with the capacity of all tiers of all pods together, and an order in which requests start. What
a policy finds when it starts a request lies in some pod's tiers, so in the union of all of them, which is no
larger than that cache; and a block gets in only when a request that has it is served. Among all ways to run
such a cache, evicting what is asked for again last (Belady's MIN, with the choice not to keep a block at all)
finds most. So for the order in which a policy's requests started no policy finds more. Two allowances make
the bound higher, never lower: blocks are found behind gaps too, and a prompt that is found altogether is not
computed at all.

Without a bound on capacity this is the trace's own reuse, every block but its first time, in any order.

All blocks of a node (see `trace.py`) are asked for together, so nodes are cached in parts rather than
block by block; that changes nothing in how much is found.
"""

import heapq
from collections.abc import Iterable
from math import inf

import numpy as np

from kvtier_scorer.simulate.blocks import Blocks
from kvtier_scorer.simulate.loop import SimulationResult
from kvtier_scorer.simulate.settings import PoolSettings


def reuse_tokens(blocks: Blocks) -> int:
    """Tokens of full blocks that an earlier request has too, whatever the order."""
    again = np.maximum(blocks.trace.nodes.uses - 1, 0)
    return int((blocks.count * again).sum()) * blocks.block_tokens


def most_hit_tokens(blocks: Blocks, order: Iterable[int], capacity_blocks: int) -> int:
    """Most tokens that a cache can give to requests that start in that order.

    Args:
        blocks: The trace in blocks of the engine.
        order: Numbers of the requests.
        capacity_blocks: Of all tiers of all pods together.
    """
    trace = blocks.trace
    asked = [int(node) for request in order for node in trace.path(request)]
    next_use = _next_uses(asked)
    cached: dict[int, int] = {}
    # nodes by when they are asked for again, the last first; an entry that is out of date names another time
    by_next: list[tuple[float, int]] = []
    due: dict[int, float] = {}
    used = hits = 0
    for node, again in zip(asked, next_use, strict=True):
        found = cached.pop(node, 0)
        hits += found
        used -= found
        if again == inf:
            continue
        size = int(blocks.count[node])
        cached[node], due[node] = size, again
        used += size
        heapq.heappush(by_next, (-again, node))
        while used > capacity_blocks:
            last, victim = by_next[0]
            if victim not in cached or due[victim] != -last:
                heapq.heappop(by_next)
                continue
            given = min(cached[victim], used - capacity_blocks)
            cached[victim] -= given
            used -= given
            if not cached[victim]:
                del cached[victim]
                heapq.heappop(by_next)
    return hits * blocks.block_tokens


def optimum_hit_rate(blocks: Blocks, pool: PoolSettings, results: Iterable[SimulationResult]) -> float:
    """The bound as a hit rate: the highest of the order of sending and those in which outcomes started."""
    pod = pool.pod
    capacity = pool.pods * sum(pod.blocks.values()) + (pool.store.blocks if pool.store else 0)
    orders = [range(len(blocks.trace)), *(result.started for result in results)]
    found = max(most_hit_tokens(blocks, order, capacity) for order in orders)
    return min(found, reuse_tokens(blocks)) / int(blocks.trace.prompt_tokens.sum())


def _next_uses(asked: list[int]) -> list[float]:
    """For each place the next place with the same node, infinite where there is none."""
    following: dict[int, int] = {}
    found = [inf] * len(asked)
    for place in range(len(asked) - 1, -1, -1):
        found[place] = following.get(asked[place], inf)
        following[asked[place]] = place
    return found
