"""An offline vLLM engine in a process of its own, told what to run line by line.

Two such processes can be alive in one run, so that an engine with the tier and one without take turns on the
same machine at the same time.
"""

import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from kvtier_connector.bench.process import LineProcess, line_process, serve
from kvtier_connector.bench.vllm_arguments import NOTHING_GIVEN, Given, make_llm
from kvtier_connector.errors import ConnectorError

if TYPE_CHECKING:
    from vllm import LLM

_ENVIRONMENT: Final = {"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
_CACHE_GIB: Final = "VLLM_CPU_KVCACHE_SPACE"
"""Of a CPU's engine; where it is set vLLM takes no notice of `kv_cache_memory_bytes` (platforms/cpu.py)."""
_THREADS: Final = "VLLM_CPU_OMP_THREADS_BIND"
_LOOK_S: Final = 0.05
_AT_REST: Final = 0.2
"""Share of one core that an engine at rest still takes at most."""
_REST_TIMEOUT_S: Final = 10.0
_DEFAULTS: Final = {"enforce_eager": True, "max_num_seqs": 4}


@dataclass(frozen=True, slots=True)
class Ask:
    """One request."""

    seed: int  # which prompt
    prompt_tokens: int  # its length
    output_tokens: int = 1  # tokens to generate; with one, the time is the time to first token
    forget: bool = False  # empty the device's prefix cache first; the tier keeps what it has


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: seconds, the generated tokens, and how many tokens of the prompt were cached."""

    seconds: float
    tokens: list[int]
    cached: int


class BenchEngine:
    """The caller's end of an engine's process."""

    def __init__(self, process: LineProcess) -> None:
        self._process = process

    def exchange(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Send a question of the engine's own module and return its answer.

        Raises:
            ConnectorError: the engine died; the message ends with its last lines.
        """
        answer: dict[str, Any] = self._process.exchange(question)
        return answer

    def run(self, ask: Ask) -> Answer:
        """Run one request.

        Raises:
            ConnectorError: as of `exchange`.
        """
        return Answer(**self.exchange(asdict(ask)))

    def rest(self, timeout_s: float = _REST_TIMEOUT_S) -> None:
        """Wait until its processes take no CPU.

        vLLM's processes spin for a second after the last message (v1 shm_broadcast.py, SpinCondition), which
        would take a core from the engine whose turn is next.

        Args:
            timeout_s: that it waits at most.
        """
        parent = psutil.Process(self._process.pid)
        family = (parent, *parent.children(recursive=True))
        until = time.monotonic() + timeout_s
        before = _cpu_s(family)
        while time.monotonic() < until:
            time.sleep(_LOOK_S)
            now = _cpu_s(family)
            if now - before < _AT_REST * _LOOK_S:
                return
            before = now


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    return math.fsum(times.user + times.system for times in (each.cpu_times() for each in processes))


@contextmanager
def bench_engine(
    settings: dict[str, Any],
    *,
    log: Path,
    given: Given = NOTHING_GIVEN,
    cores: str = "",
    module: str = __name__,
) -> Iterator[BenchEngine]:
    """Run an engine and stop it.

    Args:
        settings: arguments of vLLM's `LLM`.
        log: file that takes the engine's output.
        given: arguments from outside, over which those go.
        cores: cores that compute, as VLLM_CPU_OMP_THREADS_BIND takes them; when empty, what this process
            has in that, or all its cores. Threads that are not bound share a core now and then, and a
            prefill takes twice as long.
        module: what the process runs; it gets the settings and what is given as JSON.
    """
    with (
        tempfile.TemporaryDirectory(prefix="kvtier-") as sockets,  # vLLM leaves them
        line_process(
            module,
            json.dumps(settings),
            json.dumps(given.arguments),
            name="the engine",
            log=log,
            environment=environment(settings, given, cores) | {"VLLM_RPC_BASE_PATH": sockets},
        ) as process,
    ):
        process.answer()
        yield BenchEngine(process)


def environment(settings: dict[str, Any], given: Given, cores: str) -> dict[str, str]:
    """Return an engine's environment: this process's, with what a benchmark sets.

    Args:
        settings: as of `bench_engine`.
        given: likewise.
        cores: likewise.
    """
    sized = "kv_cache_memory_bytes" in settings or "--kv-cache-memory-bytes" in given.arguments
    inherited = {name: value for name, value in os.environ.items() if name != _CACHE_GIB}
    return {
        **inherited,
        **_ENVIRONMENT,
        **({} if sized else {_CACHE_GIB: "1"}),
        _THREADS: cores or os.environ.get(_THREADS) or _every_core(),
    }


def _every_core() -> str:
    return ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))


def start_llm(arguments: Sequence[str]) -> tuple[int, "LLM"]:
    """Start the engine that `bench_engine` asks for; returns the pipe for its answers, too."""
    settings, given = json.loads(arguments[1]), json.loads(arguments[2])
    return int(arguments[0]), make_llm(settings, given, _DEFAULTS)


def answer(llm: "LLM", question: dict[str, Any], extra_args: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run one request in the engine's process.

    Args:
        llm: the engine.
        question: an `Ask` as JSON has it.
        extra_args: of vLLM's SamplingParams.

    Raises:
        ConnectorError: the device's prefix cache could not be emptied.
    """
    from vllm import SamplingParams  # noqa: PLC0415 - only the child needs it

    ask = Ask(**question)
    if ask.forget and not llm.reset_prefix_cache():
        raise ConnectorError("the device's prefix cache could not be emptied")
    numbers = random.Random(ask.seed)  # noqa: S311 - not for secrets
    prompt = [numbers.randrange(10, 16000) for _ in range(ask.prompt_tokens)]
    how = SamplingParams(
        temperature=0,
        max_tokens=ask.output_tokens,
        ignore_eos=True,
        detokenize=False,
        extra_args=extra_args,
    )
    start = time.perf_counter()
    (output,) = llm.generate([{"prompt_token_ids": prompt}], how, use_tqdm=False)
    seconds = time.perf_counter() - start
    return asdict(Answer(seconds, list(output.outputs[0].token_ids), output.num_cached_tokens or 0))


if __name__ == "__main__":
    pipe, engine = start_llm(sys.argv[1:])
    serve(pipe, partial(answer, engine))
