"""What a connector costs the host in steps and requests, beside vLLM's own and one that does nothing.

vLLM's scheduler and both sides of each connector are driven in one process, without a model and on a device
that is not there (null_engine.py). Python calls and memory are counted, which is the same in every run; time
is the thread's own on a core, of rounds in which the sides take turns.
"""

import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from kvtier_connector.bench.measure import Row

if TYPE_CHECKING:
    from tests.bench.connector.null_engine import NullEngine

    from kvtier_connector.bench.measure import Run

REQUESTS: Final = (1, 8, 64)
PROMPT_TOKENS: Final = (1032, 15368)
"""No whole number of blocks: a prompt's end is computed, whatever is found of it."""
WORK: Final = {
    "cold": "a cold prompt, all of which is stored",
    "device": "a device hit",
    "tier": "a hit in the tier",
    "decode": "decoding",
}
_DECODED: Final = 16
"""Steps of decoding that are counted: in one of them a request begins a block."""
_ROUNDS: Final = 3
_LARGE: Final = 500_000
"""Tokens of all prompts together from which on one round says enough, and takes long."""
PARTS: Final = ("scheduler", "worker")


class Clock:
    """Adds up the seconds of each part that this thread spends on a core."""

    def __init__(self) -> None:
        self.parts: defaultdict[str, float] = defaultdict(float)
        self._part = ""
        self._depth = 0
        self._begun = 0.0

    def begin(self, part: str) -> None:
        """A part begins; within another it is the other's."""
        self._depth += 1
        if self._depth == 1:
            self._part = part
            self._begun = self._read()

    def end(self) -> None:
        """The part has ended."""
        self._depth -= 1
        if not self._depth:
            self.parts[self._part] += self._taken()

    def take(self) -> dict[str, float]:
        """Return what has come together since the last call."""
        parts, self.parts = dict(self.parts), defaultdict(float)
        return parts

    def _read(self) -> float:
        return time.thread_time()

    def _taken(self) -> float:
        return time.thread_time() - self._begun


class Calls(Clock):
    """Counts the calls of Python functions, generators' resumptions among them."""

    def _read(self) -> float:
        self._count = 0
        sys.setprofile(self._on_event)
        return 0.0

    def _taken(self) -> float:
        sys.setprofile(None)
        return self._count - 3  # what leads here

    def _on_event(self, _frame: FrameType, event: str, _argument: object) -> None:
        self._count += event == "call"


class Allocated(Clock):
    """Adds up the most bytes that each hook holds at a time, beyond what was there before it."""

    def _read(self) -> float:
        tracemalloc.reset_peak()
        return tracemalloc.get_traced_memory()[0]

    def _taken(self) -> float:
        return tracemalloc.get_traced_memory()[1] - self._begun


METERS: Final[dict[str, type[Clock]]] = {"s": Clock, "calls": Calls, "bytes": Allocated}


class Meter:
    """What all engines are told to use, which changes between passes."""

    def __init__(self) -> None:
        self.now = Clock()

    def begin(self, part: str) -> None:
        """A part begins."""
        self.now.begin(part)

    def end(self) -> None:
        """It has ended."""
        self.now.end()


def measure_row(
    engine: "NullEngine", *, meter: Meter, seed: int, requests: int, tokens: int
) -> dict[str, Any]:
    """Measure all kinds of work once, on prompts that no engine has seen.

    Returns:
        For each kind what each part came to, how many steps there were and which tokens were found.
    """
    from tests.bench.connector.null_engine import MOST_REQUESTS, prompt  # noqa: PLC0415 - imports vLLM

    def add(work: str, output_tokens: int = 1) -> None:
        names = [f"{work} {seed} {number}" for number in range(requests)]
        engine.add(
            [
                prompt(name, MOST_REQUESTS * seed + number, tokens, output_tokens)
                for number, name in enumerate(names)
            ]
        )

    def taken(steps: int) -> dict[str, Any]:
        return {"steps": engine.steps - steps, "found": engine.take_found(), **meter.now.take()}

    found: dict[str, dict[str, Any]] = {}
    taken(0)
    for work in ("cold", "device", "tier"):
        if work == "tier":
            engine.forget_device()
            taken(0)
        before = engine.steps
        add(work)
        engine.run()
        found[work] = taken(before)
    add("decode", 2 * _DECODED)
    engine.run_until_all_decode()
    taken(0)
    before = engine.steps
    for _ in range(_DECODED):
        engine.step()
    found["decode"] = taken(before)
    engine.abort()
    return found


def measure_all() -> dict[str, Any]:
    """Measure every row, in this process."""
    from tests.bench.connector.null_engine import NullEngine, null_device, sides  # noqa: PLC0415 - imports vLLM

    meter, seeds = Meter(), count()
    with tempfile.TemporaryDirectory() as scratch, null_device():
        engines = {name: NullEngine(side, meter, Path(scratch) / "model") for name, side in sides().items()}
        rows = list[dict[str, Any]]()
        for tokens in reversed(PROMPT_TOKENS):  # the first fill the tiers, which have to evict from then on
            for requests in reversed(REQUESTS):
                measured = partial(measure_row, meter=meter, requests=requests, tokens=tokens)
                rounds = 1 if requests * tokens > _LARGE else _ROUNDS
                found = _passes(engines, meter, measured, rounds=rounds, seeds=seeds)
                rows += [
                    {
                        "work": work,
                        "requests": requests,
                        "prompt_tokens": tokens,
                        "sides": {name: _figures(work, passes) for name, passes in found.items()},
                    }
                    for work in WORK
                ]
        return {"rows": rows}


def _passes(
    engines: Mapping[str, "NullEngine"],
    meter: Meter,
    measured: Callable[..., dict[str, Any]],
    *,
    rounds: int,
    seeds: Iterator[int],
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return what each pass has found, by side and unit: sides take turns, and the first pass is left out."""
    found = {name: {unit: list[dict[str, Any]]() for unit in METERS} for name in engines}
    for unit in ("s", *["s"] * rounds, "calls", "bytes"):
        seed = next(seeds)
        if unit == "bytes":
            tracemalloc.start()
        for name in list(engines)[:: 1 if seed % 2 else -1]:
            meter.now = METERS[unit]()
            found[name][unit].append(measured(engines[name], seed=seed))
        tracemalloc.stop()
    for passes in found.values():
        del passes["s"][0]
    return found


def _figures(work: str, passes: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, Any]:
    """Return one side's figures of one row."""
    first = passes["calls"][0][work]
    return {"steps": first["steps"], "found": first["found"]} | {
        part: {unit: median(each[work].get(part, 0) for each in found) for unit, found in passes.items()}
        for part in PARTS
    }


def measure(run: "Run") -> dict[str, Any]:
    """Measure in a process of its own, whose vLLM has no device.

    Returns:
        For each kind of work, number of requests and length of their prompts: steps, and of the scheduler's
        and the worker's part the Python calls, the bytes that were held, and the seconds.
    """
    log = run.log("steps")
    command = [sys.executable, "-m", __name__]
    with log.open("w") as errors:
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=errors, text=True)  # noqa: S603 - ourselves
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def rows(steps: dict[str, Any]) -> Iterator[Row]:
    """Return rows of what `measure` returns."""
    shown: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
        ("calls", lambda figures: f"{_sum(figures, 'calls'):,.0f}"),
        ("KiB", lambda figures: f"{_sum(figures, 'bytes') / 1024:,.0f}"),
        ("ms", lambda figures: f"{_sum(figures, 's') * 1e3:.2f}"),
    )
    for row in steps["rows"]:
        what = f"{row['requests']} x {row['prompt_tokens']} tokens, {WORK[row['work']]}"
        for unit, show in shown:
            each = {name: show(figures) for name, figures in row["sides"].items()}
            beside = ", ".join(f"{name} {value}" for name, value in each.items() if name != "kvtier")
            yield f"{what}: {unit}", each["kvtier"], beside, each["vllm"]


def _sum(figures: dict[str, Any], what: str) -> float:
    return float(figures["scheduler"][what] + figures["worker"][what])


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(measure_all()) + "\n")
