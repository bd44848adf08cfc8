"""The workload benchmark's load: the guide's shape made smaller, and a constant number of requests under way.

The shape is that of llm-d's guide to offloading the prefix cache to CPU memory (llm-d 0.4.0,
guides/tiered-prefix-cache/cpu/README.md, appendix). `python -m` of this file is an engine's process, which
has to log statistics (`disable_log_stats` off).
"""

import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kvtier_common.benchmarks import HIGH_CACHE, LOW_CACHE, Workload
from kvtier_connector.bench import engine
from kvtier_connector.bench.engine import BenchEngine
from kvtier_connector.errors import ConnectorError

if TYPE_CHECKING:
    from vllm import LLM


_FIRST_TOKEN: Final = 10
_TOKENS: Final = 16_000  # token ids are drawn from this many, of the bench model's 16,384


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The guide's benchmark, and how much smaller ours is.

    One engine gets its share of the groups and of the concurrency, rounded to whole ones, and caches that
    are larger by as much as the rounding added. All lengths and caches are then divided by one number. So
    these stay as they are: system prompts over device cache, over device and CPU; tokens of a prompt, of a
    question, of an answer and of a step, over one another; requests under way, over groups.
    """

    device_cache_tokens: int  # of each engine; see `IN_BLOCKS`
    tier_cache_tokens: int  # of each engine; likewise
    engines: int = 8  # model servers, "8 engines * 24.3 GB/engine"
    # `max_num_batched_tokens` of vLLM's server on an H100 (engine/arg_utils.py), which the guide does not set
    step_tokens: int = 8_192
    divisor: int = 30  # of lengths and caches; ours, so that a CPU core ends both workloads within minutes

    def high_cache(self) -> Workload:
        """System prompts that the device cache cannot hold, and device and CPU can."""
        return self._workload(HIGH_CACHE)

    def low_cache(self) -> Workload:
        """System prompts that the device cache holds."""
        return self._workload(LOW_CACHE)

    def _workload(self, guide: Workload) -> Workload:
        return Workload(
            groups=round(guide.groups / self.engines),
            prompts_per_group=guide.prompts_per_group,
            system_tokens=round(guide.system_tokens / self.divisor),
            question_tokens=round(guide.question_tokens / self.divisor),
            output_tokens=round(guide.output_tokens / self.divisor),
            concurrency=round(guide.concurrency / self.engines),
        )

    def device_tokens(self) -> int:
        """Capacity of the device cache, in tokens."""
        return self._cache_tokens(self.device_cache_tokens)

    def tier_tokens(self) -> int:
        """Capacity of the CPU tier, in tokens."""
        return self._cache_tokens(self.tier_cache_tokens)

    def step_limit_tokens(self) -> int:
        """`max_num_batched_tokens` of the engine."""
        return round(self.step_tokens / self.divisor)

    def _cache_tokens(self, tokens: int) -> int:
        rounding = self.high_cache().groups / Fraction(HIGH_CACHE.groups, self.engines)
        return ceil(tokens * rounding / self.divisor)


IN_BLOCKS: Final = Scaling(device_cache_tokens=9_271 * 16, tier_cache_tokens=41_000 * 16)
"""Caches as the guide's engines had them: "9271 GPU blocks available per engine", `num_cpu_blocks` 41,000,
in vLLM's block size on CUDA of 16 tokens (config/cache.py). The system prompts are 1.14 times the device
cache.
"""

ON_A_GPU: Final = replace(IN_BLOCKS, divisor=8)
"""A GPU computes more in the same time, and its prompts have to be long for a copy to gain anything."""


def prompts(workload: Workload, seed: str) -> list[list[int]]:
    """Return one round's prompts in the order in which they are sent, as token ids.

    Groups are mixed at random, as inference-perf does, with which the guide measured
    (datagen/shared_prefix_datagen.py). No two rounds share a prefix.
    """
    numbers = random.Random(seed)  # noqa: S311 - not for secrets

    def text(length: int) -> list[int]:
        return [_FIRST_TOKEN + numbers.randrange(_TOKENS) for _ in range(length)]

    system = [text(workload.system_tokens) for _ in range(workload.groups)]
    order = [
        start + text(workload.question_tokens) for start in system for _ in range(workload.prompts_per_group)
    ]
    numbers.shuffle(order)
    return order


def kv_bytes_per_token(config: dict[str, Any], element_bytes: int) -> int:
    """Return what one token takes in all layers, of full attention: keys and values of each KV head."""
    heads: int = config["num_attention_heads"]
    head_dim: int = config.get("head_dim") or config["hidden_size"] // heads
    kv_heads: int = config.get("num_key_value_heads") or heads
    layers: int = config["num_hidden_layers"]
    return 2 * layers * kv_heads * head_dim * element_bytes


_LAST_STORES_TOKENS: Final = 8
_LOADED: Final = "vllm:kv_offload_load_bytes"
_FROM_STORE: Final = "vllm:kvtier_remote_load_bytes"


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a workload, or what one of several engines gets of it in turns."""

    workload: Workload  # what is asked
    seed: str  # which prompts
    engine: int = 0  # whose turn an engine takes
    engines: int = 1  # how many take turns


@dataclass(frozen=True, slots=True)
class Served:
    """One request's times, counted from when it was sent."""

    ttft_s: float  # until its first token, waiting included
    e2e_s: float  # until its last token
    cached: int  # tokens of the prompt that were found in some cache
    tokens: list[int]  # what was generated


@dataclass(frozen=True, slots=True)
class RoundServed:
    """A round's seconds, its requests in the order sent, and bytes loaded."""

    seconds: float
    requests: list[Served]
    loaded_bytes: float  # from the tier in memory
    store_bytes: float = 0.0  # into it, from a store that engines share


class Piece(NamedTuple):
    """What a step gave one request: new tokens, whether they are the last, prompt tokens found cached."""

    number: int
    tokens: Sequence[int]
    last: bool
    cached: int


def constant_concurrency(
    add: Callable[[int, list[int]], None],
    step: Callable[[], Iterable[Piece]],
    asked: Sequence[list[int]],
    concurrency: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Served]:
    """Send prompts so that `concurrency` requests are under way until there are no more to send.

    Returns for each prompt, in order, when its first and its last token came, and all its tokens.
    """
    sent: list[float] = []
    first: dict[int, float] = {}
    tokens: dict[int, list[int]] = {}
    served: dict[int, Served] = {}

    def send() -> None:
        number = len(sent)
        tokens[number] = []
        sent.append(clock())
        add(number, asked[number])

    for _ in range(min(concurrency, len(asked))):
        send()
    while len(served) < len(asked):
        pieces = list(step())
        now = clock()
        for piece in pieces:
            tokens[piece.number] += piece.tokens
            if piece.tokens:
                first.setdefault(piece.number, now)
            if piece.last:
                start = sent[piece.number]
                served[piece.number] = Served(
                    first[piece.number] - start, now - start, piece.cached, tokens[piece.number]
                )
                if len(sent) < len(asked):
                    send()
    return [served[number] for number in range(len(asked))]


def answer(llm: "LLM", question: dict[str, Any], extra_args: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a `Round`, as JSON has it, in the engine's process; its device cache is emptied first.

    `extra_args` are of vLLM's SamplingParams.
    """
    from vllm import SamplingParams  # noqa: PLC0415 - only the engine's process needs vLLM
    from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415 - as above

    workload = Workload(**question["workload"])
    if not llm.reset_prefix_cache():
        raise ConnectorError("the device's prefix cache could not be emptied")

    def serve_all(asked: Sequence[list[int]], output_tokens: int) -> list[Served]:
        how = SamplingParams(
            temperature=0,
            max_tokens=output_tokens,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
            extra_args=extra_args,
        )

        def add(number: int, prompt: list[int]) -> None:
            llm.llm_engine.add_request(str(number), {"prompt_token_ids": prompt}, how)

        def step() -> Iterator[Piece]:
            for output in llm.llm_engine.step():
                tokens, cached = output.outputs[0].token_ids, output.num_cached_tokens or 0
                yield Piece(int(output.request_id), tokens, output.finished, cached)

        return constant_concurrency(add, step, asked, ceil(workload.concurrency / engines))

    engines = question["engines"]
    texts = prompts(workload, question["seed"])[question["engine"] :: engines]
    before = _bytes(llm, _LOADED), _bytes(llm, _FROM_STORE)
    start = time.perf_counter()
    served = serve_all(texts, workload.output_tokens)
    seconds = time.perf_counter() - start
    # Stores begin with the step after: this one's end before the next round begins.
    serve_all([[1]], _LAST_STORES_TOKENS)
    loaded, from_store = before
    return asdict(
        RoundServed(seconds, served, _bytes(llm, _LOADED) - loaded, _bytes(llm, _FROM_STORE) - from_store)
    )


def _bytes(llm: "LLM", name: str) -> float:
    return float(sum(metric.value for metric in llm.get_metrics() if metric.name == name))


def ask_round(asked: BenchEngine, question: Round, **more: object) -> RoundServed:
    """Have an engine's process run one round; `more` is for a module of its own."""
    reply = asked.exchange(asdict(question) | more)
    requests = [Served(**request) for request in reply.pop("requests")]
    return RoundServed(requests=requests, **reply)


def answer_any(llm: "LLM", question: dict[str, Any]) -> dict[str, Any]:
    """Run a `Round`, or an `Ask` of the engine's module, in the engine's process."""
    return answer(llm, question) if "workload" in question else engine.answer(llm, question)


if __name__ == "__main__":
    pipe, own_llm = engine.start_llm(sys.argv[1:])
    engine.serve(pipe, partial(answer_any, own_llm))
