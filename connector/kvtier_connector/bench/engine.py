"""An offline vLLM engine in a process of its own, told what to run line by line.

Two such processes can be alive in one run, so that an engine with the tier and one without take turns on the
same machine at the same time.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from kvtier_connector.bench.given import NOTHING_GIVEN, Given
from kvtier_connector.bench.held_signals import held_signals
from kvtier_connector.bench.llm import make_llm
from kvtier_connector.errors import ConnectorError

_ENVIRONMENT: Final = {"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
_CACHE_GIB: Final = "VLLM_CPU_KVCACHE_SPACE"
"""Of a CPU's engine; where it is set vLLM takes no notice of `kv_cache_memory_bytes` (platforms/cpu.py)."""
_THREADS: Final = "VLLM_CPU_OMP_THREADS_BIND"
SWITCH: Final = {
    "scheduler_cls": "kvtier_connector.bench.switch.SwitchScheduler",
    "worker_extension_cls": "kvtier_connector.bench.switch.SwitchWorker",
}
_LOG_LINES: Final = 15
_LOOK_S: Final = 0.05
_AT_REST: Final = 0.2
"""Share of one core that an engine at rest still takes at most."""
_REST_TIMEOUT_S: Final = 10.0
_END_TIMEOUT_S: Final = 20.0
_DEFAULTS: Final = {"enforce_eager": True, "max_num_seqs": 4}


@dataclass(frozen=True, slots=True)
class Ask:
    """One request.

    Args:
        seed: which prompt.
        prompt_tokens: its length.
        output_tokens: tokens to generate; with one, the time is the time to first token.
        forget: empty the device's prefix cache first; the tier keeps what it has.
        connected: whether the engine has its connector; only one with a switch can be without.
    """

    seed: int
    prompt_tokens: int
    output_tokens: int = 1
    forget: bool = False
    connected: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: seconds, the generated tokens, and how many tokens of the prompt were cached."""

    seconds: float
    tokens: list[int]
    cached: int


class BenchEngine:
    """The caller's end of an engine process."""

    def __init__(self, process: subprocess.Popen[str], answers: int, log: Path) -> None:
        self._process = process
        self._answers = os.fdopen(answers)
        self._log = log

    def ask(self, ask: Ask | None = None) -> Answer | None:
        """Run one request; with none, wait until the engine is ready.

        Raises:
            ConnectorError: the engine died; the message ends with its last lines.
        """
        answer = self.exchange(None if ask is None else asdict(ask))
        return Answer(**answer) if answer else None

    def exchange(self, question: dict[str, Any] | None) -> dict[str, Any] | None:
        """Send one line of JSON and return the one that comes back; without a question, only wait for that.

        Raises:
            ConnectorError: the engine died; the message ends with its last lines.
        """
        if question is not None and self._process.stdin:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        line = self._answers.readline()
        if not line:
            last = self._log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
            raise ConnectorError("the engine died: " + "\n".join(last))
        answer: dict[str, Any] | None = json.loads(line)
        return answer

    def run(self, ask: Ask) -> Answer:
        """Run one request and return its answer."""
        answer = self.ask(ask)
        if answer is None:
            raise ConnectorError("the engine gave no answer")
        return answer

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
        settings: arguments of vLLM's `LLM`, with SWITCH's if requests say whether it has its connector.
        log: file that takes the engine's output.
        given: arguments from outside, over which those go.
        cores: cores that compute, as VLLM_CPU_OMP_THREADS_BIND takes them; when empty, what this process
            has in that, or all its cores. Threads that are not bound share a core now and then, and a
            prefill takes twice as long.
        module: what the process runs, with the pipe for its answers, the settings and what is given as
            arguments. It writes a line when it is ready, and then one for each that it reads.
    """
    answers, child_end = os.pipe()
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="kvtier-") as sockets,  # vLLM leaves them
        log.open("w") as output,
        ExitStack() as stack,
    ):
        with held_signals():
            process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [
                    sys.executable,
                    "-m",
                    module,
                    str(child_end),
                    json.dumps(settings),
                    json.dumps(given.arguments),
                ],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                pass_fds=[child_end],
                env=environment(settings, given, cores) | {"VLLM_RPC_BASE_PATH": sockets},
            )
            stack.callback(_end, process)
        os.close(child_end)
        engine = BenchEngine(process, answers, log)
        engine.ask()
        yield engine


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


def _end(process: "subprocess.Popen[str]") -> None:
    """Have it end, and wait for its children, which may have a GPU's memory for a moment longer."""
    family = _children(process.pid)
    if process.stdin:
        process.stdin.close()
    process.wait()
    until = time.monotonic() + _END_TIMEOUT_S
    while any(map(_runs, family)) and time.monotonic() < until:
        time.sleep(_LOOK_S)


def _children(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _every_core() -> str:
    return ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))


def _serve(answers: int, settings: dict[str, Any], arguments: Sequence[str]) -> None:
    from vllm import SamplingParams  # noqa: PLC0415 - only the child needs it

    from kvtier_connector.bench.switch import switch  # noqa: PLC0415 - imports vLLM

    llm = make_llm(settings, arguments, _DEFAULTS)
    with os.fdopen(answers, "w", buffering=1) as pipe:
        pipe.write("null\n")
        for line in sys.stdin:
            ask = Ask(**json.loads(line))
            if ask.forget and not llm.reset_prefix_cache():
                raise ConnectorError("the device's prefix cache could not be emptied")
            numbers = random.Random(ask.seed)  # noqa: S311 - not for secrets
            prompt = [numbers.randrange(10, 16000) for _ in range(ask.prompt_tokens)]
            switchable = settings.keys() >= SWITCH.keys()
            how = SamplingParams(
                temperature=0,
                max_tokens=ask.output_tokens,
                ignore_eos=True,
                detokenize=False,
                extra_args=switch(llm, connected=ask.connected) if switchable else None,
            )
            start = time.perf_counter()
            (output,) = llm.generate([{"prompt_token_ids": prompt}], how, use_tqdm=False)
            seconds = time.perf_counter() - start
            answer = Answer(seconds, list(output.outputs[0].token_ids), output.num_cached_tokens or 0)
            pipe.write(json.dumps(asdict(answer)) + "\n")


if __name__ == "__main__":
    _serve(int(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3]))
