"""Has no earlier block be served any more: on the device, in memory, on disk, in the shared store.

It happens between two steps, in one go. A request that is under way goes on with the blocks that it has; what
it fills from then on is found by nobody, as it may be computed from them. So nothing that is under way, a
store, a load or a request, brings back what was there before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from vllm.v1.request import Request

from kvtier_common.tier import Tier
from kvtier_connector.core.control.choice import choose
from kvtier_connector.core.control.orders import ClearOrder, PromptTokens
from kvtier_connector.vllm.offloading.manager import KVTierManager, NeverStore
from kvtier_connector.vllm.upstream.device_cache import DeviceCache
from kvtier_connector.vllm.upstream.offloading import UpstreamScheduler

HashPrompt = Callable[[PromptTokens], Request]


@dataclass(frozen=True, slots=True)
class Cleared:
    """What was cleared."""

    blocks: dict[Tier, int]  # by tier how many: blocks on the device, chunks in memory and on disk
    requests: int  # that are under way, and store nothing any more
    # of those of a tenant's clear, by tier how many went as it is not known whose they are
    of_unknown_owner: dict[Tier, int] = field(default_factory=dict)


class Clearing:
    """Clears one engine. All of it runs in the engine's own loop."""

    def __init__(
        self,
        upstream: UpstreamScheduler,
        manager: KVTierManager,
        device: DeviceCache,
        hash_prompt: HashPrompt,
    ) -> None:
        self._upstream = upstream
        self._manager = manager
        self._device = device
        self._hash_prompt = hash_prompt

    def clear(self, order: ClearOrder) -> Cleared:
        """Clear what is ordered; tiers that share or keep it have to be waited for (`is_forgetting`)."""
        prompts = [self._hash_prompt(prompt) for prompt in order.prompts]
        barred = self._bar(order.tiers, prompts)
        cleared, strays = dict[Tier, int](), dict[Tier, int]()
        if Tier.GPU in order.tiers:  # knows no tenants
            cleared[Tier.GPU] = sum(map(self._device.forget, prompts)) if prompts else self._device.clear()
        keys = [key for prompt in prompts for key in self._upstream.keys_within(prompt)]
        memory = self._manager.memory
        # what memory has of others may have been written to disk from there
        may_have_strays = memory.may_have_strays
        if Tier.CPU in order.tiers:
            chosen = choose(memory, order, keys, may_have_strays=may_have_strays)
            cleared[Tier.CPU], strays[Tier.CPU] = len(memory.places(chosen.keys)), chosen.of_unknown_owner
            self._manager.forget(chosen.keys)
        behind = self._manager.behind
        for kind in behind.kinds if behind is not None else ():
            if behind is None or kind not in order.tiers:
                continue
            index = behind.tier(kind).index
            before = index.used if index is not None else 0
            if order.prompts or (order.share and not kind.shared):
                chosen = choose(index, order, keys, may_have_strays=may_have_strays)
                strays[kind] = chosen.of_unknown_owner
                behind.forget(kind, chosen.keys)
            else:
                behind.begin_anew(kind, order.epoch)
            if index is not None:
                cleared[kind] = before - index.used
        return Cleared(cleared, barred, strays if order.share else {})

    @property
    def is_forgetting(self) -> bool:
        """Whether a disk or a store has not said yet that it has forgotten what was cleared."""
        behind = self._manager.behind
        if behind is None:
            return False
        behind.poll()
        return behind.is_forgetting

    def take_errors(self) -> list[str]:
        """Return why something could not be cleared for all, since the last call."""
        return self._manager.behind.take_forget_errors() if self._manager.behind is not None else []

    def _bar(self, tiers: frozenset[Tier], prompts: Sequence[Request]) -> int:
        """Have requests that are under way leave nothing; returns how many those are."""
        roots = {prompt.block_hashes[0] for prompt in prompts if prompt.block_hashes}
        under_way = [
            (request, context)
            for request, context in self._upstream.requests
            if (request.is_finished() or self._device.holds_for(request))
            and (not prompts or roots.intersection(request.block_hashes[:1]))
        ]
        if Tier.GPU in tiers:
            self._device.bar(request for request, _ in under_way)
        if tiers != {Tier.GPU}:
            for _, context in under_way:
                context.set_state(NeverStore())
        return len(under_way)
