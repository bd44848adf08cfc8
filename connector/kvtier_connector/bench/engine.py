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

from kvtier_connector.bench.held_signals import held_signals
from kvtier_connector.errors import ConnectorError

_ENVIRONMENT: Final = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
SWITCH: Final = {
    "scheduler_cls": "kvtier_connector.bench.switch.SwitchScheduler",
    "worker_extension_cls": "kvtier_connector.bench.switch.SwitchWorker",
}
_LOG_LINES: Final = 15
_LOOK_S: Final = 0.05
_AT_REST: Final = 0.2
"""Share of one core that an engine at rest still takes at most."""
_REST_TIMEOUT_S: Final = 10.0


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

    def rest(self) -> None:
        """Wait until its processes take no CPU, or for ten seconds.

        vLLM's processes spin for a second after the last message (v1 shm_broadcast.py, SpinCondition), which
        would take a core from the engine whose turn is next.
        """
        parent = psutil.Process(self._process.pid)
        family = (parent, *parent.children(recursive=True))
        until = time.monotonic() + _REST_TIMEOUT_S
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
    settings: dict[str, Any], *, log: Path, cores: str = "", module: str = __name__
) -> Iterator[BenchEngine]:
    """Run an engine and stop it.

    Args:
        settings: arguments of vLLM's `LLM`, with SWITCH's if requests say whether it has its connector.
        log: file that takes the engine's output.
        cores: cores that compute, as VLLM_CPU_OMP_THREADS_BIND takes them; all of this process when empty.
            Threads that are not bound share a core now and then, and a prefill takes twice as long.
        module: what the process runs, with the pipe for its answers and the settings as arguments. It writes
            a line when it is ready, and then one for each that it reads.
    """
    answers, child_end = os.pipe()
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kvtier-") as sockets:  # vLLM leaves them
        bound = {"VLLM_CPU_OMP_THREADS_BIND": cores or _every_core(), "VLLM_RPC_BASE_PATH": sockets}
        with log.open("w") as output, ExitStack() as stack:
            with held_signals():
                process = subprocess.Popen(  # noqa: S603 - our own interpreter
                    [sys.executable, "-m", module, str(child_end), json.dumps(settings)],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    text=True,
                    pass_fds=[child_end],
                    env=os.environ | _ENVIRONMENT | bound,
                )
                stack.callback(_end, process)
            os.close(child_end)
            engine = BenchEngine(process, answers, log)
            engine.ask()
            yield engine


def _end(process: "subprocess.Popen[str]") -> None:
    if process.stdin:
        process.stdin.close()
    process.wait()


def _every_core() -> str:
    return ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))


def _serve(answers: int, settings: dict[str, Any]) -> None:
    from vllm import LLM, SamplingParams  # noqa: PLC0415 - only the child needs it

    from kvtier_connector.bench.switch import switch  # noqa: PLC0415 - imports vLLM

    llm = LLM(**settings, skip_tokenizer_init=True, enforce_eager=True, max_num_seqs=4, seed=0)
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
    _serve(int(sys.argv[1]), json.loads(sys.argv[2]))
