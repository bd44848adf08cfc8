"""kvtier's own picker: the real scheduler, index and configuration, in front of simulated pods."""

from dataclasses import replace
from typing import Final

import numpy as np

from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import NoScorerError, PickerInput, TierTokens
from kvtier_scorer.config.parse import parse_settings
from kvtier_scorer.config.settings import Metrics, PickerSettings
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.scheduling.model import Pick, PickRequest, Prompt
from kvtier_scorer.scheduling.pods import PodInfo, PodLoad, PodTable
from kvtier_scorer.scheduling.scheduler import Scheduler
from kvtier_scorer.simulate.engine.caches import CacheListener
from kvtier_scorer.simulate.engine.loads import Loads
from kvtier_scorer.simulate.engine.policy import Situation
from kvtier_scorer.simulate.errors import PoolError
from kvtier_scorer.simulate.traces.blocks import first_tokens, prompt_token_ids

_MS_PER_S: Final = 1000


class Kvtier:
    """Picks with kvtier's scheduler; the index guesses what pods hold from what was sent to them.

    Args:
        situation: Trace, pods and weights.
    """

    def __init__(self, situation: Situation) -> None:
        pool = situation.pool
        self._trace = situation.trace
        self._first_token = first_tokens(situation.trace)
        settings = settings_for(situation)
        self._index = PrefixIndex()
        self._table = PodTable(self._index)
        self._addresses = [f"pod-{number}" for number in range(pool.pods)]
        self._pods = {
            self._table.put(PodInfo(address, address), pool.pod.blocks): number
            for number, address in enumerate(self._addresses)
        }
        rng = np.random.default_rng(situation.random.getrandbits(64))
        self._scheduler = Scheduler(settings, self._table, self._index, rng)
        self._read_at_s = -1.0

    @property
    def listener(self) -> CacheListener | None:
        """Nobody: this picker guesses."""
        return None

    def pick(self, request: int, loads: Loads, now_s: float) -> int:
        """The scheduler's pod; the index learns of it."""
        if loads.read_at_s > self._read_at_s:
            self._read(loads)
        tokens = prompt_token_ids(self._trace, request, self._first_token)
        prompt = Prompt(self._trace.models[request], "", b"", tokens)
        picked = self._scheduler.pick(PickRequest(prompt), now_s)
        self._picked(request, picked)
        self._scheduler.record_sent(picked)
        return self._pods[picked.pod]

    def _picked(self, request: int, picked: Pick) -> None:
        """Is told of each pick before the index learns of it."""

    def _read(self, loads: Loads) -> None:
        self._read_at_s = loads.read_at_s
        for number, address in enumerate(self._addresses):
            load = PodLoad(
                queue_depth=int(loads.queue_depth[number]),
                running=int(loads.running[number]),
                kv_cache_utilization=float(loads.kv_cache_utilization[number]),
                loras=frozenset(),
                at_s=loads.read_at_s,
            )
            self._table.load(address, load)


def settings_for(situation: Situation) -> PickerSettings:
    """The picker's settings as the operator would render them, with the pool's scrape interval.

    Raises:
        PoolError: No weight belongs to a scorer that these pods have.
    """
    try:
        settings = parse_settings(picker_config("builtin", _input(situation)).text)
    except NoScorerError as error:
        raise PoolError(f"--weights: {error}") from None
    # of the same age at which its operator would call them stale
    interval_ms = round(situation.pool.scrape_interval_s * _MS_PER_S)
    return replace(settings, metrics=Metrics(scrape_interval_ms=interval_ms))


def _input(situation: Situation) -> PickerInput:
    pod = situation.pool.pod
    return PickerInput(
        weights=situation.weights,
        tokens=TierTokens({tier: blocks * pod.block_tokens for tier, blocks in pod.blocks.items() if blocks}),
        engine_block_tokens=pod.block_tokens,
    )
