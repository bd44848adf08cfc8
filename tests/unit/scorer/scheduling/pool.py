"""A pool of pods to schedule on, and prompts made of blocks of 16 tokens."""

import numpy as np

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import KV_CACHE_UTILIZATION, PREFIX_SCORERS, QUEUE
from kvtier_scorer.config.settings import PickerSettings, PrefixSettings, ScorerSetting, Shedding
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.scheduling.model import PickRequest, Prompt
from kvtier_scorer.scheduling.pods import PodInfo, PodLoad, PodTable
from kvtier_scorer.scheduling.scheduler import Scheduler

PREFIX = PrefixSettings(block_tokens=16, max_tokens=4096, entries={Tier.GPU: 100, Tier.CPU: 200})
WEIGHTS = {
    QUEUE: 2.0,
    KV_CACHE_UTILIZATION: 2.0,
    PREFIX_SCORERS[Tier.GPU]: 1.0,
    PREFIX_SCORERS[Tier.CPU]: 1.0,
}


def settings(
    weights: dict[str, float] = WEIGHTS,
    *,
    prefix: PrefixSettings | None = PREFIX,
    shedding: Shedding | None = None,
) -> PickerSettings:
    scorers = tuple(ScorerSetting(kind, weight) for kind, weight in weights.items())
    return PickerSettings(scorers, prefix, shedding=shedding or Shedding())


def prompt(*blocks: int, model: str = "m", salt: str = "") -> Prompt:
    """A prompt of text with one full block a number; equal numbers are equal blocks."""
    return Prompt(model, salt, b"".join(f"{block:064}".encode() for block in blocks))


def request(*blocks: int, subset: set[str] | None = None, priority: int = 0) -> PickRequest:
    return PickRequest(prompt(*blocks), None if subset is None else frozenset(subset), priority)


class Pool:
    """Pods named and addressed by their number."""

    def __init__(self, pods: int, asked: PickerSettings | None = None, seed: int = 0) -> None:
        self.settings = asked or settings()
        self.index = PrefixIndex(1 << 28)
        self.table = PodTable(self.index, self.settings.retained)
        self.scheduler = Scheduler(self.settings, self.table, self.index, np.random.default_rng(seed))
        for pod in range(pods):
            self.add(f"pod-{pod}", address(pod))

    def add(self, name: str, at: str) -> int:
        entries = {} if self.settings.prefix is None else self.settings.prefix.first_entries
        return self.table.put(PodInfo(name, at), entries)

    def read(self, pod: int, queue_depth: int = 0, used: float = 0.0, at_s: float = 0.0) -> None:
        self.table.load(address(pod), PodLoad(queue_depth, 0, used, frozenset(), at_s))

    def holds(self, pod: int, *blocks: int) -> None:
        """Let the index believe that a pod was sent these blocks."""
        probe = self.scheduler.pick(request(*blocks), 0.0)
        self.index.assume_stored(pod, probe.hashes)

    def picks(self, asked: PickRequest, times: int = 60, now_s: float = 0.0) -> set[str]:
        """Every pod that gets the request in so many independent picks."""
        return {self.scheduler.pick(asked, now_s).pod_name for _ in range(times)}


def address(pod: int) -> str:
    return f"10.0.0.{pod}:8000"
