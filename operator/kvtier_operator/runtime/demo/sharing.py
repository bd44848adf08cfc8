"""The demo's third part: two engines and a third one after them, with one store behind all."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from kvtier_common.terminal.console import PlainConsole
from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.planning.plan import Plan
from kvtier_operator.runtime.demo.prompts import Questions
from kvtier_operator.runtime.demo.tier import QUESTION, fit_resource, unless_an_engine_fails
from kvtier_operator.runtime.measure import Answer, OpenAIClient, Query, Samples
from kvtier_operator.runtime.metrics import parse_metrics
from kvtier_operator.runtime.process import LOOPBACK, free_ports
from kvtier_operator.runtime.session import RunOptions, Session
from kvtier_operator.runtime.store import LocalStore, StorePlace

DOCUMENTS: Final = 3
_STORE_TIMES: Final = 2
"""The store holds so many times what the CPU tier does."""
_OUTPUT_TOKENS: Final = 8
_MOSTLY: Final = 0.9
_LOOK_S: Final = 0.2
_QUIET_LOOKS: Final = 5
_QUIET_S: Final = 30.0


class Source(StrEnum):
    """Who asks, and where the prefix is then."""

    COMPUTED = "first engine, cold"
    SHARED = "second engine"
    LATER = "a third, after both"


@dataclass(frozen=True, slots=True)
class SharingResult:
    """Answers about the same documents from different engines."""

    answers: Mapping[Source, tuple[Answer, ...]]  # of each document
    prompt_tokens: int  # of the shortest prompt
    start_s: float
    measure_s: float

    def ttft(self, source: Source) -> Samples:
        """Times to first token."""
        return Samples.of([answer.ttft_s for answer in self.answers[source]])

    @property
    def speedup(self) -> float:
        """Median time to first token computed over that of another engine with the store."""
        return self.ttft(Source.COMPUTED).median_s / self.ttft(Source.SHARED).median_s

    @property
    def outputs_equal(self) -> bool:
        """Whether all engines say the same, token for token."""
        texts = [[answer.text for answer in answers] for answers in self.answers.values()]
        return all(text == texts[0] for text in texts)

    def to_json(self) -> dict[str, Any]:
        """The figures."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "outputs_equal": self.outputs_equal,
            "speedup": self.speedup,
            "ttft_s": {source.name.lower(): self.ttft(source).to_json() for source in Source},
        }


def fit_sharing_resource(
    resource: KVCacheTier, name: str, tokens: int, kv_bytes_per_token: int, store: StorePlace
) -> KVCacheTier:
    """The demo's resource with a store behind it."""
    fitted = fit_resource(resource, name, tokens, kv_bytes_per_token, prompts=_prompts())
    document = fitted.manifest()
    document["spec"]["tiers"]["remote"] = {"url": store.url, "capacity": str(store.memory_bytes)}
    return parse_resource(document, "the demo's resource")


def store_place(tokens: int, kv_bytes_per_token: int) -> StorePlace:
    """Where the store will be, large enough for all documents."""
    return StorePlace.free(_STORE_TIMES * _prompts() * tokens * kv_bytes_per_token)


def _prompts() -> int:
    return 2 * (DOCUMENTS + 1)


async def run_sharing(  # noqa: PLR0913, PLR0917 - as the other parts, and the store
    plan: Plan, model: Path, asked: Questions, store: StorePlace, logs: Path, console: PlainConsole
) -> SharingResult:
    """Have one engine compute documents, and others answer about them."""
    name = plan.resource.spec.model.names[0]
    queries = [
        Query.completion(name, text + QUESTION, _OUTPUT_TOKENS) for text in asked.texts[: DOCUMENTS + 1]
    ]
    *shared, own = queries
    started = time.monotonic()
    async with LocalStore(store, logs / "store") as running:
        with console.status("starting a store and two engines"):
            async with (
                _session(plan, model, logs / "sharing-1") as first,
                _session(plan, model, logs / "sharing-2") as second,
            ):
                ready = time.monotonic()
                console.print(f"a store and two engines are ready after {ready - started:.0f} s")
                computed = await _ask(first, shared, times=2)
                await _until_quiet(running.values)
                await _ask(second, [own])  # what its own first prompt costs is not the store's
                from_store = await _ask(second, shared, from_store=True)
        with console.status("both engines have ended; a third one starts"):
            before = time.monotonic()
            async with _session(plan, model, logs / "sharing-3") as third:
                again_s = time.monotonic() - before
                later = await _ask(third, shared, from_store=True)
    answers = {Source.COMPUTED: computed, Source.SHARED: from_store, Source.LATER: later}
    for source, of_source in answers.items():
        times = Samples.of([answer.ttft_s for answer in of_source])
        console.print(f"{source:<20} TTFT {times.median_s:8.3f} s", markup=False)
    start_s = ready - started + again_s
    tokens = min(answer.prompt_tokens or 0 for answer in computed)
    return SharingResult(answers, tokens, start_s, time.monotonic() - started - start_s)


@asynccontextmanager
async def _session(plan: Plan, model: Path, folder: Path) -> AsyncIterator[Session]:
    [port] = free_ports(1, LOOPBACK)
    async with Session(RunOptions(LOOPBACK, port, folder, model), plan.engine, 1) as session:
        await session.wait_ready()
        yield session


async def _ask(
    session: Session, queries: Sequence[Query], *, times: int = 1, from_store: bool = False
) -> tuple[Answer, ...]:
    """Ask one after another, each as often as said; returns the first answers."""

    def ask() -> tuple[Answer, ...]:
        with OpenAIClient(session.url) as client:
            before = parse_metrics(client.text("/metrics"))
            answers = [_first_of(client, query, times) for query in queries]
            served = parse_metrics(client.text("/metrics")).since(before)
            if from_store:
                _verify(served.cached_tokens.get("remote", 0), served.prompt_tokens)
            return tuple(answers)

    return await unless_an_engine_fails(asyncio.to_thread(ask), [session])


def _first_of(client: OpenAIClient, query: Query, times: int) -> Answer:
    answers = [client.ask(query) for _ in range(times)]
    return answers[0]


def _verify(from_store: int, prompt_tokens: int) -> None:
    if from_store < _MOSTLY * prompt_tokens:
        raise RuntimeFailedError(
            f"the demo does not show what it should: {from_store} of {prompt_tokens} prompt tokens came from "
            "the store (vLLM's counters)"
        )


async def _until_quiet(values: Callable[[], Awaitable[int]]) -> None:
    """Wait until the store grows no more: engines write beside serving."""
    until_s = time.monotonic() + _QUIET_S
    looks, last = 0, -1
    while looks < _QUIET_LOOKS and time.monotonic() < until_s:
        now = await values()
        looks = looks + 1 if now == last and now else 0
        last = now
        await asyncio.sleep(_LOOK_S)
