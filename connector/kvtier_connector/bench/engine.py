"""An offline vLLM engine in a process of its own, told what to run line by line.

Two such processes can be alive in one run, so that an engine with the tier and one without take turns on the
same machine at the same time.
"""

import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TextIO

import psutil

from kvtier_connector.bench.vllm_arguments import NO_SERVE_OPTIONS, ServeOptions, make_llm
from kvtier_connector.errors import ConnectorError

if TYPE_CHECKING:
    from vllm import LLM


_ENDINGS: Final = (signal.SIGINT, signal.SIGTERM)
_LOG_LINES: Final = 15
_LAST_LINES_S: Final = 10.0
_LOOK_S: Final = 0.05
_CHILDREN_TIMEOUT_S: Final = 20.0


@contextmanager
def held_signals() -> Iterator[None]:
    """What comes while the context lasts is handled when it ends; other threads have no signals to hold.

    Between a child's start and the line that sees to its end, a handler's exception would leave it running.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        del frame
        came.append(number)

    def hand_on() -> None:
        if came:
            signal.raise_signal(came[0])

    with ExitStack() as stack:
        # last of all: then the handlers are back, each of them, whatever one of them raises
        stack.callback(hand_on)
        for number in _ENDINGS:
            stack.callback(signal.signal, number, signal.getsignal(number))
            signal.signal(number, hold)
        yield


class LineProcess:
    """The caller's end of such a process; `log` has what else it prints, `name` is for people."""

    def __init__(self, process: "subprocess.Popen[str]", answers: TextIO, log: Path, name: str) -> None:
        self.pid = process.pid
        self._process = process
        self._answers = answers
        self._log = log
        self._name = name

    def answer(self) -> Any:  # noqa: ANN401 - JSON
        """Wait for the next answer, of which the first says that the process is ready.

        Raises ConnectorError: it died; the message ends with its last lines.
        """
        line = self._answers.readline()
        if not line:
            with suppress(subprocess.TimeoutExpired):  # the pipe closes before the last lines are written
                self._process.wait(_LAST_LINES_S)
            last = self._log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
            raise ConnectorError(f"{self._name} died: " + "\n".join(last))
        return json.loads(line)

    def exchange(self, question: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """Ask, and wait for the answer."""
        if self._process.stdin:
            with suppress(BrokenPipeError):  # it died, which `answer` tells of
                self._process.stdin.write(json.dumps(question) + "\n")
                self._process.stdin.flush()
        return self.answer()


@contextmanager
def line_process(
    module: str,
    *arguments: str,
    name: str,
    log: Path,
    environment: Mapping[str, str],
    patience_s: float | None = None,
) -> Iterator[LineProcess]:
    """Start a process and end it.

    It runs a module that calls `serve` with its first argument, the pipe for its answers. The log takes its
    output, the name is for people. It has `patience_s` to end, or as long as it takes, and is killed then.
    """
    reader, writer = os.pipe()
    log.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(reader) as answers, log.open("w") as output, ExitStack() as stack:
        with held_signals():
            process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-m", module, str(writer), *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                pass_fds=[writer],
                env=dict(environment),
            )
            stack.callback(end, process, patience_s)
        os.close(writer)
        yield LineProcess(process, answers, log, name)


def serve(answers: int, handle: Callable[[Any], Any], ready: object = None) -> None:
    """Answer the lines of the standard input until it ends, `ready` first; what such a process does."""
    with os.fdopen(answers, "w", buffering=1) as pipe:
        pipe.write(json.dumps(ready) + "\n")
        for line in sys.stdin:
            pipe.write(json.dumps(handle(json.loads(line))) + "\n")


def end(process: "subprocess.Popen[str]", patience_s: float | None = None) -> None:
    """Have it end, and wait for its children, which may have a GPU's memory for a moment longer."""
    family = children_of(process.pid)
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    until = time.monotonic() + _CHILDREN_TIMEOUT_S
    while any(map(runs, family)) and time.monotonic() < until:
        time.sleep(_LOOK_S)


def children_of(pid: int) -> list[psutil.Process]:
    """Return a process's children and theirs; none once it has ended."""
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def runs(process: psutil.Process) -> bool:
    """Tell whether a process has not ended."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


_ENVIRONMENT: Final = {"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
_CACHE_GIB: Final = "VLLM_CPU_KVCACHE_SPACE"
"""Of a CPU's engine; where it is set vLLM takes no notice of `kv_cache_memory_bytes` (platforms/cpu.py)."""
_THREADS: Final = "VLLM_CPU_OMP_THREADS_BIND"
_AT_REST: Final = 0.2  # share of one core that an engine at rest still takes at most
_REST_TIMEOUT_S: Final = 10.0
_DEFAULTS: Final = {"enforce_eager": True, "max_num_seqs": 4}
_NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})


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
    """The caller's end of an engine's process, which took `ready_s` seconds to be ready."""

    def __init__(self, process: LineProcess, ready_s: float) -> None:
        self.ready_s = ready_s
        self.pid = process.pid
        self._process = process

    def exchange(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Send a question of the engine's own module; ConnectorError has a dead engine's last lines."""
        answer: dict[str, Any] = self._process.exchange(question)
        return answer

    def run(self, ask: Ask) -> Answer:
        """Run one request; ConnectorError as of `exchange`."""
        return Answer(**self.exchange(asdict(ask)))

    def rest(self, timeout_s: float = _REST_TIMEOUT_S) -> None:
        """Wait until its processes take no CPU, `timeout_s` at most.

        vLLM's processes spin for a second after the last message (v1 shm_broadcast.py, SpinCondition), which
        would take a core from the engine whose turn is next.
        """
        parent = psutil.Process(self.pid)
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
    return math.fsum(times.user + times.system for times in (process.cpu_times() for process in processes))


@contextmanager
def bench_engine(  # noqa: PLR0913 - what an engine is made of
    settings: dict[str, Any],
    *,
    log: Path,
    serve_options: ServeOptions = NO_SERVE_OPTIONS,
    cores: str = "",
    module: str = __name__,
    variables: Mapping[str, str] = _NO_VARIABLES,
) -> Iterator[BenchEngine]:
    """Run an engine of vLLM's `LLM` with these settings, which go over the arguments given from outside.

    Cores that compute are as VLLM_CPU_OMP_THREADS_BIND takes them; when empty, what this process has in that,
    or all its cores. Threads that are not bound share a core now and then, and a prefill takes twice as long.
    The module is what the process runs; it gets the settings and what is given as JSON. Variables are of its
    environment, over what a benchmark sets.
    """
    begun_s = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="kvtier-") as sockets,  # vLLM leaves them
        line_process(
            module,
            json.dumps(settings),
            json.dumps(serve_options.arguments),
            name="the engine",
            log=log,
            environment={
                **environment(settings, serve_options, cores),
                "VLLM_RPC_BASE_PATH": sockets,
                **variables,
            },
        ) as process,
    ):
        process.answer()
        yield BenchEngine(process, time.monotonic() - begun_s)


def environment(settings: dict[str, Any], serve_options: ServeOptions, cores: str) -> dict[str, str]:
    """Return an engine's environment: this process's, with what a benchmark sets."""
    sized = "kv_cache_memory_bytes" in settings or "--kv-cache-memory-bytes" in serve_options.arguments
    every_core = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    inherited = {name: value for name, value in os.environ.items() if name != _CACHE_GIB}
    return {
        **inherited,
        **_ENVIRONMENT,
        **({} if sized else {_CACHE_GIB: "1"}),
        _THREADS: cores or os.environ.get(_THREADS) or every_core,
    }


def start_llm(arguments: Sequence[str]) -> tuple[int, "LLM"]:
    """Start the engine that `bench_engine` asks for; returns the pipe for its answers, too."""
    settings, serve_options = json.loads(arguments[1]), json.loads(arguments[2])
    return int(arguments[0]), make_llm(settings, serve_options, _DEFAULTS)


def prompt(seed: int, tokens: int) -> list[int]:
    """Return the prompt of a seed as token ids, the same every time; those of two seeds share no prefix."""
    numbers = random.Random(str(seed))  # noqa: S311 - not for secrets; of a number it takes no sign
    return [numbers.randrange(10, 16000) for _ in range(tokens)]


def answer(llm: "LLM", question: dict[str, Any], extra_args: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run an `Ask`, as JSON has it, in the engine's process; `extra_args` are vLLM's of sampling."""
    from vllm import SamplingParams  # noqa: PLC0415 - only the child needs it

    ask = Ask(**question)
    if ask.forget and not llm.reset_prefix_cache():
        raise ConnectorError("the device's prefix cache could not be emptied")
    how = SamplingParams(
        temperature=0, max_tokens=ask.output_tokens, ignore_eos=True, detokenize=False, extra_args=extra_args
    )
    ids = prompt(ask.seed, ask.prompt_tokens)
    start = time.perf_counter()
    (output,) = llm.generate([{"prompt_token_ids": ids}], how, use_tqdm=False)
    seconds = time.perf_counter() - start
    return asdict(Answer(seconds, list(output.outputs[0].token_ids), output.num_cached_tokens or 0))


if __name__ == "__main__":
    pipe, engine = start_llm(sys.argv[1:])
    serve(pipe, partial(answer, engine))
