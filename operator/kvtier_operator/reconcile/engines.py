"""Asks running engines, beside all reconciling, what their tiers hold."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

from kvtier_operator.reconcile.facts.deployment import DeploymentFacts
from kvtier_operator.reconcile.facts.engine_tokens import read_tiers
from kvtier_operator.reconcile.planned import Planned
from kvtier_operator.reconcile.pods import Pods
from kvtier_operator.reconcile.queue import backoff_s
from kvtier_operator.reconcile.sighting import Sighting, merged
from kvtier_operator.reconcile.tiers import Key, Tier

_LOG: Final = logging.getLogger(__name__)
_AT_A_TIME: Final = 8
_TIMEOUT: Final = aiohttp.ClientTimeout(total=5.0)
_FIRST_S: Final = 5.0
_LONGEST_S: Final = 600.0
"""A tier's size is known from the engine's first step on, which may be long in coming."""


class Engines:
    """Looks at one ready engine of each resource once its rollout is complete.

    An engine that cannot be reached, or does not say, leaves the plan's figures in force: it is asked again,
    less and less often.

    Args:
        pods: Know the addresses.
        again: Has a resource reconciled after so many seconds.
    """

    def __init__(self, pods: Pods, again: Callable[[Key, float], None]) -> None:
        self._pods = pods
        self._again = again
        self._turns = asyncio.Semaphore(_AT_A_TIME)
        self._asking: dict[Key, asyncio.Task[None]] = {}
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Lets engines be asked until the end of the block."""
        async with aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=False) as self._session:
            try:
                yield
            finally:
                for task in self._asking.values():
                    task.cancel()
                await asyncio.gather(*self._asking.values(), return_exceptions=True)

    def look(self, key: Key, tier: Tier, planned: Planned, engine: DeploymentFacts | None) -> None:
        """Begins to ask if there is something to learn; returns at once."""
        memory = tier.memory
        if memory.looked_for != planned.engine_hash:
            memory.looked_for, memory.looks, memory.look_due = planned.engine_hash, 0, 0.0
        elif (
            memory.sighting
            and memory.sighting.engine_hash == planned.engine_hash
            and memory.sighting.complete
            and not memory.sighting.may_change
        ):
            return
        address = self._pods.engine_address(*key)
        complete = engine is not None and engine.complete and not planned.rejected
        if not complete or address is None or key in self._asking:
            return
        wait_s = memory.look_due - _now()
        if wait_s > 0:
            # this reconciliation may have taken the place of that one
            self._again(key, wait_s)
            return
        task = asyncio.create_task(self._ask(key, tier, planned, address), name=f"engine of {key}")
        self._asking[key] = task
        task.add_done_callback(lambda _: self._asking.pop(key, None))

    async def _ask(self, key: Key, tier: Tier, planned: Planned, address: str) -> None:
        memory = tier.memory
        try:
            async with self._turns:
                said = read_tiers(await self._metrics(address, planned.engine_port))
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            _LOG.debug("%s: the engine at %s was not asked for its tiers: %s", key, address, error)
        else:
            sighting = merged(memory.sighting, Sighting(planned.engine_hash, *said))
            if sighting != memory.sighting:
                memory.sighting = sighting
                self._again(key, 0.0)
            if sighting.complete:
                if sighting.may_change:
                    self._look_in(_LONGEST_S, key, tier)
                return
        memory.looks += 1
        self._look_in(backoff_s(memory.looks, first_s=_FIRST_S, longest_s=_LONGEST_S), key, tier)

    def _look_in(self, wait_s: float, key: Key, tier: Tier) -> None:
        tier.memory.look_due = _now() + wait_s
        self._again(key, wait_s)

    async def _metrics(self, address: str, port: int) -> str:
        if self._session is None:
            raise RuntimeError("engines are asked before open()")
        host = f"[{address}]" if ":" in address else address
        async with self._session.get(f"http://{host}:{port}/metrics", allow_redirects=False) as response:
            response.raise_for_status()
            return await response.text(errors="replace")


def _now() -> float:
    return asyncio.get_running_loop().time()
