"""The workload benchmark's load: a constant number of requests under way, in the process of the engine.

`python -m` of this file is such a process; `bench/engines/engine.py` starts it.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kvtier_common.benchmarks import Workload
from kvtier_connector.bench.engines.llm import make_llm
from kvtier_connector.bench.engines.process import serve
from kvtier_connector.bench.parts.workloads.shape import prompts
from kvtier_connector.errors import ConnectorError

if TYPE_CHECKING:
    from vllm import LLM, SamplingParams

_LAST_STORES_TOKENS: Final = 8
_LOADED: Final = "vllm:kv_offload_load_bytes"
_DEFAULTS: Final = {"enforce_eager": True}


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a workload.

    Args:
        workload: what is asked, as a dictionary of `Workload`'s values when it comes from JSON.
        seed: which prompts.
        connected: whether the engine has its connector; None where it cannot be taken out.
    """

    workload: Workload
    seed: str
    connected: bool | None


@dataclass(frozen=True, slots=True)
class Served:
    """One request's times, counted from when it was sent.

    Args:
        ttft_s: until its first token, waiting included.
        e2e_s: until its last token.
        cached: tokens of the prompt that were found in some cache.
        tokens: what was generated.
    """

    ttft_s: float
    e2e_s: float
    cached: int
    tokens: list[int]


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


def run_round(llm: "LLM", asked: Round) -> RoundServed:
    """Run one round in vLLM's `LLM`, with a switch if the round asks for one.

    Its device cache is emptied first.

    Raises:
        ConnectorError: the device cache could not be emptied.
    """
    from vllm import SamplingParams  # noqa: PLC0415 - only the engine's process needs vLLM
    from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415 - as above

    from kvtier_connector.bench.engines.switch import switch  # noqa: PLC0415 - as above

    if not llm.reset_prefix_cache():
        raise ConnectorError("the device's prefix cache could not be emptied")
    extra_args = None if asked.connected is None else switch(llm, connected=asked.connected)

    def params(tokens: int) -> SamplingParams:
        return SamplingParams(
            temperature=0,
            max_tokens=tokens,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
            extra_args=extra_args,
        )

    texts = prompts(asked.workload, asked.seed)
    engine = _VllmEngine(llm, params(asked.workload.output_tokens))
    before = _loaded_bytes(llm)
    start = time.perf_counter()
    served = constant_concurrency(engine, texts, asked.workload.concurrency)
    seconds = time.perf_counter() - start
    # Stores begin with the step after: this one's end before the connector is taken out.
    constant_concurrency(_VllmEngine(llm, params(_LAST_STORES_TOKENS)), [[1]], 1)
    return RoundServed(seconds, served, _loaded_bytes(llm) - before)


def _loaded_bytes(llm: "LLM") -> float:
    return float(sum(metric.value for metric in llm.get_metrics() if metric.name == _LOADED))


def main(arguments: Sequence[str]) -> None:
    """Serve one engine, as `bench_engine` asks it."""
    answers, settings, given = int(arguments[0]), json.loads(arguments[1]), json.loads(arguments[2])
    llm = make_llm(settings | {"disable_log_stats": False}, given, _DEFAULTS)

    def run(question: dict[str, Any]) -> dict[str, Any]:
        question["workload"] = Workload(**question["workload"])
        return asdict(run_round(llm, Round(**question)))

    serve(answers, run)


if __name__ == "__main__":
    main(sys.argv[1:])
