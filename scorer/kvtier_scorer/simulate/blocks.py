"""A trace's prompts cut into blocks of some size, each numbered by all that it depends on.

A block belongs to the node that its last token lies in, because it depends on everything up to there. Blocks
that only one request has are never looked for again: they all get the number -1, which keeps the tables of
those that do come back small.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.index.compiled import compiled
from kvtier_scorer.simulate.trace import Trace

ONCE = -1  # the number of a block that no second request has


@dataclass(frozen=True)
class Blocks:
    """Blocks of `block_tokens` tokens."""

    trace: Trace  # whose prompts
    block_tokens: int  # tokens in a block
    named: int  # how many numbers there are: 0 to `named` - 1
    count: NDArray[np.int64]  # blocks whose last token lies in each node (int64)
    first: NDArray[np.int64]  # number of the first of them (int64); -1 where one request has them alone
    # number of what is left at the end of a prompt, by its last node (int64), -1 likewise
    rest: NDArray[np.int64]

    def of(self, request: int, most: int | None = None, *, with_rest: bool = False) -> NDArray[np.int32]:
        """Numbers of a prompt's full blocks, from the first (int32), `most` at most.

        With `with_rest` also that of what is left after the last full block, where something is.
        """
        path = self.trace.path(request)
        tokens = int(self.trace.prompt_tokens[request])
        full = tokens // self.block_tokens
        extra = int(with_rest and tokens % self.block_tokens > 0)
        numbers = np.empty(full + extra, np.int32)
        _expand(path, self.first, self.count, numbers)
        if extra:
            numbers[full] = self.rest[path[-1]]
        return numbers if most is None else numbers[:most]


def blocks_of(trace: Trace, block_tokens: int) -> Blocks:
    """Number the blocks of `block_tokens` tokens of every prompt."""
    nodes = trace.nodes
    count = (nodes.start + nodes.tokens) // block_tokens - nodes.start // block_tokens
    shared = nodes.uses > 1
    ends = np.cumsum(np.where(shared, count, 0))
    first = np.where(shared, ends - count, ONCE)
    named = int(ends[-1])
    repeated = nodes.ends > 1
    rest = np.where(repeated, named + np.cumsum(repeated) - 1, ONCE)
    return Blocks(trace, block_tokens, named + int(repeated.sum()), count, first, rest)


def prompt_token_ids(trace: Trace, request: int, first_token: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Token ids of a prompt (uint32), from `first_tokens`: equal prefixes have equal ids, and only they."""
    ids = np.empty(int(trace.prompt_tokens[request]), np.uint32)
    _expand(trace.path(request), first_token, trace.nodes.tokens, ids)
    return ids


def first_tokens(trace: Trace) -> NDArray[np.int64]:
    """A token id for each node to begin with (int64), so that no two nodes share one."""
    return np.cumsum(trace.nodes.tokens) - trace.nodes.tokens


@compiled
def _expand(
    path: NDArray[np.int64],
    first: NDArray[np.int64],
    count: NDArray[np.int64],
    out: NDArray[np.int32] | NDArray[np.uint32],
) -> None:
    place = 0
    for node in path:
        number = first[node]
        for offset in range(count[node]):
            out[place] = number + offset if number >= 0 else -1
            place += 1
