"""A trace as arrays: prompts are paths in a tree of segments, so that equal prefixes are equal nodes."""

import random
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_common.benchmarks import Workload
from kvtier_common.hints import NO_HINTS, Hints


class SimulationError(ValueError):
    """What was asked cannot be simulated; the message says where and what to change."""


class TraceError(SimulationError):
    """A trace cannot be read; the message names file, line and field."""


class PoolError(SimulationError):
    """Pods of these sizes cannot serve this trace."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a prompt."""

    # equal for two segments of the same content. Prompts share a prefix as far as their first segments have
    # equal keys, so a key may also stand for its content and everything before it.
    key: Hashable
    tokens: int  # its length, 1 at least; the same wherever the key is the same


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One request."""

    model: str  # its model; models share no prefix
    segments: tuple[Segment, ...]  # the prompt, one segment at least
    output_tokens: int  # tokens of the answer, 1 at least
    # when it is sent, from the start of the trace; None where the trace has a constant concurrency
    time_s: float | None = None
    hints: Hints = NO_HINTS  # what it says of its prompt's blocks


_NO_PARENT = -1


@dataclass(frozen=True, slots=True)
class Nodes:
    """The tree's nodes; a parent has a smaller number than its children."""

    parent: NDArray[np.int64]  # number of the node before it (int64), -1 for the first of a model
    start: NDArray[np.int64]  # tokens before it (int64)
    tokens: NDArray[np.int64]  # its own (int64)
    uses: NDArray[np.int64]  # requests whose prompt goes through it (int64)
    ends: NDArray[np.int64]  # requests whose prompt ends with it (int64)


@dataclass(frozen=True)
class Trace:
    """Requests in the order in which they are sent."""

    name: str  # of a file or a workload
    nodes: Nodes  # the tree
    paths: NDArray[np.int64]  # nodes of all prompts one after another (int64)
    # where each request's nodes begin in `paths`, and the end of the last (int64)
    path_start: NDArray[np.int64]
    models: tuple[str, ...]  # name of each request's model
    output_tokens: NDArray[np.int64]  # of each request (int64)
    # when each is sent (float64, not falling); None with a constant concurrency
    time_s: NDArray[np.float64] | None
    concurrency: int | None  # requests under way at any time; None where times are given
    hints: tuple[Hints, ...]  # what each request says of its prompt's blocks
    # where all nodes are blocks of so many tokens, but for what is left of a prompt in the last
    block_tokens: int | None = None

    def __len__(self) -> int:
        return len(self.models)

    def path(self, request: int) -> NDArray[np.int64]:
        """Nodes of a request's prompt, first to last."""
        return self.paths[self.path_start[request] : self.path_start[request + 1]]

    @property
    def hinted(self) -> bool:
        """Whether any request says something of its blocks."""
        return any(hints != NO_HINTS for hints in self.hints)

    @cached_property
    def prompt_tokens(self) -> NDArray[np.int64]:
        """Length of each prompt (int64)."""
        last = self.paths[self.path_start[1:] - 1]
        return self.nodes.start[last] + self.nodes.tokens[last]


def build_trace(
    name: str,
    requests: Iterable[TraceRequest],
    concurrency: int | None = None,
    block_tokens: int | None = None,
) -> Trace:
    """A trace of `requests`, sorted by the time at which they are sent; all have a time, or none.

    `block_tokens` is for prompts that are cut into blocks of so many.

    Raises TraceError: there are no requests.
    """
    in_order = list(requests)
    if not in_order:
        raise TraceError(f"{name}: holds no request; give a trace with one at least")
    times = None
    if concurrency is None:
        in_order.sort(key=lambda request: request.time_s or 0.0)
        times = np.array([request.time_s or 0.0 for request in in_order])
    tree = _Tree()
    paths: list[int] = []
    path_start = [0]
    for request in in_order:
        paths += tree.path(request)
        path_start.append(len(paths))
    return Trace(
        name=name,
        nodes=tree.nodes(),
        paths=np.array(paths, np.int64),
        path_start=np.array(path_start, np.int64),
        models=tuple(request.model for request in in_order),
        output_tokens=np.array([request.output_tokens for request in in_order], np.int64),
        time_s=times,
        concurrency=concurrency,
        hints=tuple(request.hints for request in in_order),
        block_tokens=block_tokens,
    )


class _Tree:
    """Numbers the nodes while requests come in."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, Hashable], int] = {}
        self._rows: list[list[int]] = []

    def path(self, request: TraceRequest) -> list[int]:
        path: list[int] = []
        node, start = _NO_PARENT, 0
        for segment in request.segments:
            # a first segment belongs to its model; later ones do through their parent
            key = (node, segment.key if path else (request.model, segment.key))
            number = self._numbers.setdefault(key, len(self._rows))
            if number == len(self._rows):
                self._rows.append([node, start, segment.tokens, 0, 0])
            row = self._rows[number]
            row[3] += 1
            start += row[2]
            node = number
            path.append(number)
        self._rows[node][4] += 1
        return path

    def nodes(self) -> Nodes:
        return Nodes(*np.array(self._rows, np.int64).T.copy())


_MODEL: Final = "Qwen/Qwen3-32B"
_MOST_REQUESTS: Final = 1_000_000


def generate(name: str, workload: Workload, seed: int, rate_per_s: float | None = None) -> Trace:
    """The requests of a workload as they are sent: groups are mixed at random, as inference-perf does.

    With a rate, requests come so many a second on average, at random times (Poisson), in place of the
    concurrency. Raises TraceError: it would be too many requests.
    """
    if workload.requests > _MOST_REQUESTS:
        raise TraceError(
            f"{name}: {workload.requests:,} requests are too many, {_MOST_REQUESTS:,} at most; "
            "ask for fewer groups or prompts"
        )
    concurrency = workload.concurrency if rate_per_s is None else None
    return build_trace(name, _requests(workload, seed, rate_per_s), concurrency)


def _requests(workload: Workload, seed: int, rate_per_s: float | None) -> Iterator[TraceRequest]:
    numbers = random.Random(seed)  # noqa: S311 - not for secrets
    groups = [group for group in range(workload.groups) for _ in range(workload.prompts_per_group)]
    numbers.shuffle(groups)
    time_s = 0.0
    for question, group in enumerate(groups):
        if rate_per_s is not None:
            time_s += numbers.expovariate(rate_per_s)
        yield TraceRequest(
            model=_MODEL,
            segments=(
                Segment(("system", group), workload.system_tokens),
                Segment(("question", question), workload.question_tokens),
            ),
            output_tokens=workload.output_tokens,
            time_s=None if rate_per_s is None else time_s,
        )
