"""Does what comes over the control socket: in the engine's own loop, a piece at a time.

The socket's threads wait for the engine; the engine waits for nobody.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar
from uuid import uuid4

from vllm.v1.request import Request

from kvtier_connector.core.control.orders import (
    ClearOrder,
    PrefetchOrder,
    PromptTokens,
    StatusOrder,
    read_order,
)
from kvtier_connector.core.control.socket_server import IsWanted
from kvtier_connector.errors import ConnectorError
from kvtier_connector.vllm.behind.prefetches import Chunk, Fetched, Prefetches
from kvtier_connector.vllm.control.clearing import Cleared, Clearing
from kvtier_connector.vllm.control.holdings import tiers_held
from kvtier_connector.vllm.offloading.manager import KVTierManager
from kvtier_connector.vllm.upstream.compat import log
from kvtier_connector.vllm.upstream.device_cache import DeviceCache
from kvtier_connector.vllm.upstream.engine_loop import EngineBusyError
from kvtier_connector.vllm.upstream.offloading import UpstreamScheduler

_T = TypeVar("_T")
_ENGINE_S: Final = 120.0
"""How long a step may keep an order waiting: a long prompt's takes a minute on a CPU."""
_LOOK_S: Final = 0.01  # how often what is under way is looked at, where the engine may do no steps
_FETCH_LOOK_S: Final = 0.05  # how often a prefetch is looked at: nobody waits for it
_HUNG_UP_S: Final = 0.5  # how often it is looked for whether somebody still wants a prefetch
_FORGET_S: Final = 60.0  # how long disk and store may take to forget
_FETCH_S: Final = 60.0  # how long a prefetch may hold what has come of it
_AFTER_PROMPT: Final = "blocks of what came after the prompt, as of longer conversations, are not cleared"
_ASK_S: Final = 1.0  # how long a store may take to say what it has before a prefetch is answered

CallEngine = Callable[[Callable[[], Any], float], Any]
"""Has something done in the engine's loop, within a time in seconds, and returns what it returns."""


class Control:
    """One engine's."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        upstream: UpstreamScheduler,
        manager: KVTierManager,
        device: DeviceCache,
        *,
        rank: int,  # of the data-parallel replicas
        most_tokens: int,  # of a prompt
        tenants: Collection[str],  # names that shares can have
        hash_prompt: Callable[[list[int], str], Request],
        call: CallEngine,
        hold: Callable[[], AbstractContextManager[None]],  # holds the manager, in the engine's loop
    ) -> None:
        self._upstream = upstream
        self._manager = manager
        self._device = device
        self._rank = rank
        self._most_tokens = most_tokens
        self._tenants = tenants
        self._hash = hash_prompt
        self._call = call
        self._hold = hold
        self._clearing = Clearing(upstream, manager, device, self._hash_prompt)
        self._prefetches: Prefetches | None = None
        self._one_clear = threading.Lock()

    def answer(self, fields: Mapping[str, Any], is_wanted: IsWanted = lambda: True) -> dict[str, Any]:
        """Do an order and say what came of it, with `error` where it failed.

        A prefetch ends when it is not wanted any more; whatever clears goes on.

        Raises MalformedError: it is no order.
        """
        order = read_order(fields)
        try:
            match order:
                case ClearOrder():
                    said = self._clear(order)
                case PrefetchOrder(prompt):
                    said = self._prefetch(prompt, is_wanted)
                case StatusOrder():
                    said = self._do(self._status)
        except ConnectorError as error:
            said = {"error": str(error)}
        except Exception as error:  # noqa: BLE001 - the order failed, and the engine goes on
            log.exception("kvtier: the control socket's order failed")
            said = {"error": f"{type(error).__name__}: {error}"}
        return {"rank": self._rank, **said}

    def _do(self, deed: Callable[[], _T], within_s: float = _ENGINE_S) -> _T:
        def held() -> _T:
            with self._hold():
                return deed()

        done: _T = self._call(held, within_s)
        return done

    def _hash_prompt(self, prompt: PromptTokens) -> Request:
        return self._hash(list(prompt.tokens), prompt.cache_salt)

    # ---- clear ----

    def _clear(self, order: ClearOrder) -> dict[str, Any]:
        if order.share and order.share not in self._tenants:
            known = ", ".join(sorted(self._tenants)) or "none"
            return {"error": f"share: there is no tenant {order.share!r}; there are: {known}"}
        order = replace(order, epoch=order.epoch or uuid4().hex)
        with self._one_clear:
            cleared: Cleared = self._do(partial(self._clearing.clear, order))
            until_s = time.monotonic() + _FORGET_S
            while self._do(lambda: self._clearing.is_forgetting):
                if time.monotonic() > until_s:
                    return {"error": f"disk or store have not forgotten everything within {_FORGET_S:g} s"}
                time.sleep(_LOOK_S)
            errors = self._do(self._clearing.take_errors)
        said: dict[str, Any] = {
            "cleared": {tier.label: blocks for tier, blocks in cleared.blocks.items()},
            "requests_under_way": cleared.requests,
        }
        if cleared.of_unknown_owner:
            said["of_unknown_owner"] = {
                tier.label: blocks for tier, blocks in cleared.of_unknown_owner.items()
            }
        if order.prompts:
            said["note"] = _AFTER_PROMPT
        log.info("kvtier: cleared by order: %s", said)
        return said | ({"error": "; ".join(errors)} if errors else {})

    # ---- prefetch ----

    def _prefetch(self, prompt: PromptTokens, is_wanted: IsWanted) -> dict[str, Any]:
        tokens = len(prompt.tokens)
        if tokens > self._most_tokens:
            return {"error": f"tokens: got {tokens}, this engine's prompts have at most {self._most_tokens}"}
        # hashes are of the tokens alone: made here, in the socket's thread, they keep no step waiting
        chunks = [Chunk(*chunk) for chunk in self._upstream.chunks_of(self._hash_prompt(prompt))]
        name, fetched = self._do_if_wanted(partial(self._begin_prefetch, chunks), is_wanted)
        try:
            fetched = self._known_soon(name, fetched, is_wanted)
        finally:
            if fetched.coming:
                for_s = _FETCH_S if is_wanted() else 0.0
                threading.Thread(
                    target=self._tend, args=(name, for_s), name="kvtier-prefetch", daemon=True
                ).start()
        chunk_tokens = self._manager.chunk_tokens
        counts = {"in_memory": fetched.here, "coming": fetched.coming, "absent": fetched.absent}
        return {
            "tokens": tokens,
            **{f"{state}_tokens": chunks * chunk_tokens for state, chunks in counts.items()},
        }

    def _known_soon(self, name: str, fetched: Fetched, is_wanted: IsWanted) -> Fetched:
        """Wait a little until it is known what comes of a prefetch."""
        until_s = time.monotonic() + _ASK_S
        while fetched.coming and is_wanted() and time.monotonic() < until_s:
            if not self._do_if_wanted(partial(self._is_open, name), is_wanted):
                break
            time.sleep(_FETCH_LOOK_S)
            fetched = self._do_if_wanted(partial(self._look, name), is_wanted) or fetched
        return fetched

    def _do_if_wanted(self, deed: Callable[[], _T], is_wanted: IsWanted) -> _T:
        """Do something while somebody wants it; raises EngineBusyError as soon as nobody does, or in time."""
        until_s = time.monotonic() + _ENGINE_S
        while True:
            try:
                return self._do(deed, _HUNG_UP_S)
            except EngineBusyError:
                if not is_wanted():
                    raise
                if time.monotonic() > until_s:
                    why = f"the engine has not come to it within {_ENGINE_S:g} s"
                    raise EngineBusyError(why) from None

    def _begin_prefetch(self, chunks: Sequence[Chunk]) -> tuple[str, Fetched]:
        behind = self._manager.behind
        if behind is None:
            here = len(self._manager.memory.places([chunk.key for chunk in chunks]))
            return "", Fetched(here, 0, len(chunks) - here)
        if self._prefetches is None:
            self._prefetches = Prefetches(self._manager.memory, behind)
        return self._prefetches.begin(chunks)

    def _is_open(self, name: str) -> bool:
        """Tell whether it may soon be known better what comes of a prefetch."""
        return self._is_asking() or (self._prefetches is not None and self._prefetches.has_unseen(name))

    def _is_asking(self) -> bool:
        behind = self._manager.behind
        return behind is not None and any(behind.tier(kind).asking for kind in behind.kinds)

    def _look(self, name: str) -> Fetched | None:
        return self._prefetches.look(name) if self._prefetches and name in self._prefetches else None

    def _tend(self, name: str, for_s: float) -> None:
        """Have a prefetch go on where the engine does no steps, until all has come, or for a while."""
        until_s = time.monotonic() + for_s
        has_ended = False
        while not has_ended:
            time.sleep(_FETCH_LOOK_S)
            deed = self._look if time.monotonic() < until_s else self._end_prefetch
            try:
                has_ended = self._do(partial(deed, name)) is None
            except EngineBusyError:  # it holds blocks until it is ended
                log.info("kvtier: a prefetch waits for the engine's step")

    def _end_prefetch(self, name: str) -> None:
        if self._prefetches is not None:
            self._prefetches.end(name)

    # ---- status ----

    def _status(self) -> dict[str, Any]:
        return {
            "chunk_tokens": self._manager.chunk_tokens,
            "tiers": tiers_held(self._manager, self._device),
            "prefetches": len(self._prefetches) if self._prefetches is not None else 0,
        }
