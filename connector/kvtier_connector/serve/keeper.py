"""Has the prefixes computed before the engine is healthy, and asks for them again so that they stay."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from kvtier_common.one_line import one_line
from kvtier_connector.payload import PREFIXES_WITHIN_VARIABLE
from kvtier_connector.serve import metrics
from kvtier_connector.serve.asgi import Answer, Ask, Request, json_answer
from kvtier_connector.serve.prefixes import Prefix
from kvtier_connector.serve.turns import Turn

RANK_HEADER: Final = "x-data-parallel-rank"
"""vLLM's own: which of several data-parallel engines computes a request."""
_LOOK_S: Final = 0.25
_LOOK_WHEN_OPEN_S: Final = 5.0
_LOOK_AGAIN_S: Final = 60.0
"""A prefix is asked for again after that, in half of what it is kept for at most: what is cached of it costs
nothing, and what requests with hints of their own have displaced is computed again."""
_FEWEST_S_FOR_EACH: Final = 1.0  # so that many prefixes do not busy the engine
_RETRY_S: Final = 60.0
_ASK_S: Final = 900.0  # a prompt that takes longer is taken for failed
_MOST_CHARACTERS: Final = 300

log: Final = logging.getLogger("vllm.kvtier")  # vLLM configures handlers for its own name only


class NotComputedError(Exception):
    """A prefix was not computed; one line."""


@dataclass(frozen=True, slots=True)
class Computed:
    """What the engine says of a prefix that it was asked for; of several engines the least."""

    tokens: int
    cached_tokens: int | None  # None where the server does not say it

    @classmethod
    def of(cls, answer: Answer) -> "Computed":
        """Read an answer. Raises NotComputedError: it is an error, or has no usage."""
        said = answer.json()
        said = said if isinstance(said, dict) else {}
        usage = said.get("usage")
        if not answer.is_ok or not isinstance(usage, dict):
            error = said.get("error", said)
            message = error.get("message") if isinstance(error, dict) else error
            text = one_line(str(message or "no usage in the answer"), _MOST_CHARACTERS)
            raise NotComputedError(f"{answer.status}: {text}")
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        return cls(_number(usage.get("prompt_tokens")) or 0, _number(cached))

    def __str__(self) -> str:
        cached = "" if self.cached_tokens is None else f", {self.cached_tokens:,} of them cached"
        return f"{self.tokens:,} tokens{cached}"


class PrefixKeeper:
    """Computes prefixes once `run` is awaited; the engine is not to be called healthy before `is_open`."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        prefixes: Sequence[Prefix],
        ask: Ask,
        *,
        within_s: float,  # after which the engine is healthy without them
        ranks: int = 1,  # data-parallel engines, of which each has to compute them
        turn: Turn,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._prefixes = prefixes
        self._ask = ask
        self._within_s = within_s
        self._ranks = ranks
        self._turn = turn
        self._sleep = sleep
        self._computed: dict[str, Computed] = {}
        self._failed = set[str]()
        self._most_cached: dict[str, int] = {}  # tokens, by prefix
        self._fallen = set[str]()  # less was cached when asked for last
        self._done = 0  # asked for once, whatever came of it; by whosever turn it is
        self.is_open = not prefixes

    def held(self) -> Answer:
        """Return what a probe is answered until the engine is called healthy."""
        held = {"status": "computing prefixes", "prefixes": self._done, "of": len(self._prefixes)}
        return json_answer(HTTPStatus.SERVICE_UNAVAILABLE, held)

    async def run(self) -> None:
        """Compute the prefixes, and ask for them again for as long as the server runs. Raises nothing."""
        if not self._prefixes:
            return
        timer = asyncio.get_running_loop().call_later(self._within_s, self._open_late)
        try:
            await self._until_healthy()
            while not self._turn.take():
                self._follow()
                await self._sleep(_LOOK_WHEN_OPEN_S if self.is_open else _LOOK_S)
            await self._keep(await self._compute_all())
        except Exception as error:  # noqa: BLE001 - an engine without its prefixes is one that serves
            log.warning("kvtier: prefixes are not kept any more: %s: %s", type(error).__name__, error)
        finally:
            self.is_open = True
            timer.cancel()
            self._turn.close()

    async def _until_healthy(self) -> None:
        while not (await self._ask(Request("GET", "/health"))).is_ok:
            await self._sleep(_LOOK_S)

    def _follow(self) -> None:
        """Take note of how far another API server of this engine is."""
        heard = self._turn.heard()
        self._done = heard.get("prefixes", 0)
        self.is_open = self.is_open or bool(heard.get("open"))

    async def _compute_all(self) -> dict[str, float]:
        """Ask for each once; returns when each is to be asked for again, by time.monotonic()."""
        start_s, due_s = time.monotonic(), dict[str, float]()
        for prefix in self._prefixes:
            due_s[prefix.name] = await self._compute(prefix)
            self._done += 1
            self._tell()
        self.is_open = True
        self._tell()
        told = _listed(f"{name} ({computed})" for name, computed in self._computed.items())
        log.info(
            "kvtier: %d of %d prefixes computed in %.1f s%s",
            len(self._computed),
            len(self._prefixes),
            time.monotonic() - start_s,
            told and f": {told}",
        )
        return due_s

    async def _keep(self, due_s: dict[str, float]) -> None:
        """Ask for each again before the time is over for which it is kept."""
        while True:
            prefix = min(self._prefixes, key=lambda prefix: due_s[prefix.name])
            await self._sleep(max(0.0, due_s[prefix.name] - time.monotonic()))
            due_s[prefix.name] = await self._compute(prefix)

    async def _compute(self, prefix: Prefix) -> float:
        """Ask every engine for a prefix; returns when to ask again."""
        look_again_s = max(_LOOK_AGAIN_S, _FEWEST_S_FOR_EACH * len(self._prefixes))
        every_s = min(look_again_s, prefix.retain_s / 2)
        try:
            found = await asyncio.gather(*(self._compute_on(prefix, rank) for rank in range(self._ranks)))
        except Exception as error:  # noqa: BLE001 - whatever the server raises
            if prefix.name not in self._failed:  # once: it goes on being tried
                reason = error if isinstance(error, NotComputedError) else f"{type(error).__name__}: {error}"
                log.warning("kvtier: prefix %s is not computed: %s", prefix.name, reason)
            self._failed.add(prefix.name)
            self._computed.pop(prefix.name, None)
            metrics.tell_failed(prefix.name)
            return time.monotonic() + min(_RETRY_S, every_s)
        self._failed.discard(prefix.name)
        least = min(found, key=lambda computed: computed.cached_tokens or 0)
        self._tell_fallen(prefix.name, least)
        self._computed[prefix.name] = least
        metrics.tell_asked(prefix.name, least.tokens, least.cached_tokens)
        return time.monotonic() + every_s

    def _tell_fallen(self, name: str, computed: Computed) -> None:
        """Say once that less of a prefix was cached than has been, until it stays again."""
        cached_tokens = computed.cached_tokens or 0
        has_fallen = computed.cached_tokens is not None and cached_tokens < self._most_cached.get(name, 0)
        self._most_cached[name] = max(self._most_cached.get(name, 0), cached_tokens)
        if not has_fallen:
            self._fallen.discard(name)
        elif name not in self._fallen:
            self._fallen.add(name)
            log.warning(
                "kvtier: prefix %s had left the cache and is computed again: %s; raise what hints may "
                "retain, or have fewer requests say priority high",
                name,
                computed,
            )

    async def _compute_on(self, prefix: Prefix, rank: int) -> Computed:
        headers = {RANK_HEADER: str(rank)} if self._ranks > 1 else {}
        asked = self._ask(Request("POST", prefix.path, prefix.request(), headers))
        return Computed.of(await asyncio.wait_for(asked, _ASK_S))

    def _open_late(self) -> None:
        if self.is_open:
            return
        self.is_open = True
        lacking = [prefix.name for prefix in self._prefixes if prefix.name not in self._computed]
        log.warning(
            "kvtier: /health is open after %g s, while these prefixes are still to be computed: %s; raise "
            "%s, or shorten them",
            self._within_s,
            _listed(lacking),
            PREFIXES_WITHIN_VARIABLE,
        )

    def _tell(self) -> None:
        self._turn.tell(json.dumps({"prefixes": self._done, "open": int(self.is_open)}))


def _number(value: Any) -> int | None:  # noqa: ANN401 - whatever stands there
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _listed(names: Iterable[str], most: int = 10) -> str:
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
