"""Tiers on one trace: the connector's index in the trace's own time, plain LRU and the optimum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bench.connector.hit_rate import LRUCache, Prompt, contiguous, optimal_hits

from kvtier_common.hints import NO_HINTS, Hints, Priority
from kvtier_connector.core.index.hints import BlockHint, Sharing, TenantPart
from kvtier_connector.core.index.index import BlockIndex, BlockState
from kvtier_scorer.simulate.blocks import blocks_of
from kvtier_scorer.simulate.trace import Trace

CHUNK_TOKENS = 128
"""What a tier moves at once in these runs."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A trace in chunks.

    Attributes:
        prompts: Numbers of the full chunks of each prompt, root to tail.
        times_s: When each is sent.
        trace: The requests.
    """

    prompts: Sequence[Prompt]
    times_s: Sequence[float]
    trace: Trace


def in_chunks(trace: Trace) -> Asked:
    """A trace with times, in chunks; those that no second prompt has are numbered as well."""
    blocks = blocks_of(trace, CHUNK_TOKENS)
    number = blocks.named
    prompts = []
    for request in range(len(trace)):
        prompt = blocks.of(request).tolist()
        for place, chunk in enumerate(prompt):
            if chunk < 0:
                prompt[place], number = number, number + 1
        prompts.append(prompt)
    return Asked(prompts, [] if trace.time_s is None else trace.time_s.tolist(), trace)


def working_set_chunks(asked: Asked) -> float:
    """Chunks that have been used and will be used again, on average over the trace's time."""
    first_s: dict[int, float] = {}
    last_s: dict[int, float] = {}
    for prompt, time_s in zip(asked.prompts, asked.times_s, strict=True):
        for chunk in prompt:
            first_s.setdefault(chunk, time_s)
            last_s[chunk] = time_s
    lived_s = sum(last_s[chunk] - begun_s for chunk, begun_s in first_s.items())
    return lived_s / (asked.times_s[-1] - asked.times_s[0])


def lru_hits(asked: Asked, capacity: int) -> list[int]:
    """Chunks found of each prompt by an LRU cache that evicts tails before roots, as vLLM's."""
    cache = LRUCache(capacity)
    return [cache.use(prompt) for prompt in asked.prompts]


def optimum_hits(asked: Asked, capacity: int) -> list[int]:
    """Chunks found of each prompt by the best of all policies, which may not be possible."""
    return optimal_hits(asked.prompts, capacity)


def index_hits(
    asked: Asked,
    capacity: int,
    *,
    hints: Sequence[Hints] | None = None,
    retained_share: float = 0.3,
    tenants: Mapping[str, TenantPart] | None = None,
) -> list[int]:
    """Chunks found of each prompt by the connector's index, whose clock shows the trace's time.

    Args:
        asked: The prompts.
        capacity: Of the tier, in chunks.
        hints: What each request says; what the trace has, if None.
        retained_share: Part of the tier that hints may keep.
        tenants: Their parts, by name.
    """
    index = TimedIndex(capacity, retained_share, tenants or {})
    said = asked.trace.hints if hints is None else hints
    return [index.use(*each) for each in zip(asked.prompts, asked.times_s, said, strict=True)]


class TimedIndex:
    """The tier's index, called as the connector calls it for a request that is served at once."""

    def __init__(self, capacity: int, retained_share: float, tenants: Mapping[str, TenantPart]) -> None:
        self._now_s = 0.0
        sharing = Sharing(retained_share, tenants)
        self.index = BlockIndex(capacity, 8, sharing=sharing, clock=lambda: self._now_s)

    def use(self, prompt: Prompt, now_s: float, said: Hints) -> int:
        """Look up until the first miss, load what was found, store the rest; returns how much was found."""
        self._now_s = now_s
        hint = _block_hint(said, now_s)
        keys = [chunk.to_bytes(8, "little") for chunk in prompt]
        ready = {key for key in keys if self.index.state(key) is BlockState.READY}
        found = contiguous(keys, ready)  # type: ignore[arg-type]
        self.index.pin(keys[:found], hint)
        self.index.unpin(keys[:found])
        own = set(keys)
        if not said.never_store:
            self.index.commit(self.index.reserve(keys[found:], keep=own.__contains__, hint=hint).keys)
        self.index.touch(keys, hint)
        return found


def _block_hint(said: Hints, now_s: float) -> BlockHint | None:
    if said == NO_HINTS:
        return None
    until_s = now_s + said.retain_s if said.retain_s else 0.0
    return BlockHint(until_s, Priority(said.priority), said.tenant)
