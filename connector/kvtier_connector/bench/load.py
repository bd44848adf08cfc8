"""The workload benchmark's load: a constant number of requests under way, in the process of the engine.

`python -m` of this file is such a process, which has to log statistics (`disable_log_stats` off).
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kvtier_common.benchmarks.shared_prefixes import Workload
from kvtier_connector.bench.engine import BenchEngine, start_llm
from kvtier_connector.bench.process import serve
from kvtier_connector.bench.scaling import prompts
from kvtier_connector.errors import ConnectorError

if TYPE_CHECKING:
    from vllm import LLM, SamplingParams


_LAST_STORES_TOKENS: Final = 8
_LOADED: Final = "vllm:kv_offload_load_bytes"


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a workload."""

    workload: Workload  # what is asked
    seed: str  # which prompts


@dataclass(frozen=True, slots=True)
class Served:
    """One request's times, counted from when it was sent."""

    ttft_s: float  # until its first token, waiting included
    e2e_s: float  # until its last token
    cached: int  # tokens of the prompt that were found in some cache
    tokens: list[int]  # what was generated


@dataclass(frozen=True, slots=True)
class RoundServed:
    """A round's seconds, its requests in the order sent, and bytes loaded from the tier."""

    seconds: float
    requests: list[Served]
    loaded_bytes: float


class Piece(NamedTuple):
    """What a step gave one request: new tokens, whether they are the last, prompt tokens found cached."""

    number: int
    tokens: Sequence[int]
    last: bool
    cached: int


class Engine(Protocol):
    """What a load needs of an engine."""

    def add(self, number: int, prompt: list[int]) -> None:
        """Take a request."""

    def step(self) -> Iterable[Piece]:
        """Wait for the engine's next step."""


def constant_concurrency(
    engine: Engine,
    asked: Sequence[list[int]],
    concurrency: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Served]:
    """Send prompts so that `concurrency` requests are under way until there are no more to send.

    Returns:
        For each prompt, in order, when its first and its last token came, and all its tokens.
    """
    sent: list[float] = []
    first: dict[int, float] = {}
    tokens: dict[int, list[int]] = {}
    served: dict[int, Served] = {}

    def send() -> None:
        number = len(sent)
        tokens[number] = []
        sent.append(clock())
        engine.add(number, asked[number])

    for _ in range(min(concurrency, len(asked))):
        send()
    while len(served) < len(asked):
        pieces = list(engine.step())
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


class _VllmEngine:
    def __init__(self, llm: "LLM", params: "SamplingParams") -> None:
        self._engine = llm.llm_engine
        self._params = params

    def add(self, number: int, prompt: list[int]) -> None:
        self._engine.add_request(str(number), {"prompt_token_ids": prompt}, self._params)

    def step(self) -> Iterable[Piece]:
        for output in self._engine.step():
            yield Piece(
                int(output.request_id),
                output.outputs[0].token_ids,
                output.finished,
                output.num_cached_tokens or 0,
            )


def answer(llm: "LLM", question: dict[str, Any], extra_args: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run one round in the engine's process; its device cache is emptied first.

    Args:
        llm: the engine.
        question: a `Round` as JSON has it.
        extra_args: of vLLM's SamplingParams.

    Raises:
        ConnectorError: the device cache could not be emptied.
    """
    from vllm import SamplingParams  # noqa: PLC0415 - only the engine's process needs vLLM
    from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415 - as above

    workload = Workload(**question["workload"])
    if not llm.reset_prefix_cache():
        raise ConnectorError("the device's prefix cache could not be emptied")

    def params(tokens: int) -> SamplingParams:
        return SamplingParams(
            temperature=0,
            max_tokens=tokens,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
            extra_args=extra_args,
        )

    texts = prompts(workload, question["seed"])
    engine = _VllmEngine(llm, params(workload.output_tokens))
    before = _loaded_bytes(llm)
    start = time.perf_counter()
    served = constant_concurrency(engine, texts, workload.concurrency)
    seconds = time.perf_counter() - start
    # Stores begin with the step after: this one's end before the next round begins.
    constant_concurrency(_VllmEngine(llm, params(_LAST_STORES_TOKENS)), [[1]], 1)
    return asdict(RoundServed(seconds, served, _loaded_bytes(llm) - before))


def _loaded_bytes(llm: "LLM") -> float:
    return float(sum(metric.value for metric in llm.get_metrics() if metric.name == _LOADED))


def ask_round(engine: BenchEngine, asked: Round, **more: object) -> RoundServed:
    """Have an engine's process run one round; `more` is for a module of its own.

    Raises:
        ConnectorError: it died.
    """
    found = engine.exchange(asdict(asked) | more)
    requests = [Served(**request) for request in found.pop("requests")]
    return RoundServed(requests=requests, **found)


if __name__ == "__main__":
    pipe, llm = start_llm(sys.argv[1:])
    serve(pipe, partial(answer, llm))
