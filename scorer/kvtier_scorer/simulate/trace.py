"""A trace as arrays: prompts are paths in a tree of segments, so that equal prefixes are equal nodes."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


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

    def __len__(self) -> int:
        return len(self.models)

    def path(self, request: int) -> NDArray[np.int64]:
        """Nodes of a request's prompt, first to last."""
        return self.paths[self.path_start[request] : self.path_start[request + 1]]

    @cached_property
    def prompt_tokens(self) -> NDArray[np.int64]:
        """Length of each prompt (int64)."""
        last = self.paths[self.path_start[1:] - 1]
        return self.nodes.start[last] + self.nodes.tokens[last]


def build_trace(name: str, requests: Iterable[TraceRequest], concurrency: int | None = None) -> Trace:
    """A trace of `requests`, sorted by the time at which they are sent.

    Args:
        name: Of a file or a workload.
        requests: At least one; all with a time, or none.
        concurrency: Requests under way at any time; None where they have times.

    Raises:
        TraceError: There are no requests.
    """
    given = list(requests)
    if not given:
        raise TraceError(f"{name}: holds no request; give a trace with one at least")
    times = None
    if concurrency is None:
        given.sort(key=lambda request: request.time_s or 0.0)
        times = np.array([request.time_s or 0.0 for request in given])
    tree = _Tree()
    paths: list[int] = []
    path_start = [0]
    for request in given:
        paths += tree.path(request)
        path_start.append(len(paths))
    return Trace(
        name=name,
        nodes=tree.nodes(),
        paths=np.array(paths, np.int64),
        path_start=np.array(path_start, np.int64),
        models=tuple(request.model for request in given),
        output_tokens=np.array([request.output_tokens for request in given], np.int64),
        time_s=times,
        concurrency=concurrency,
    )


class _Tree:
    """Numbers the nodes while requests come in."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, Hashable], int] = {}
        self._parent: list[int] = []
        self._start: list[int] = []
        self._tokens: list[int] = []
        self._uses: list[int] = []
        self._ends: list[int] = []

    def path(self, request: TraceRequest) -> list[int]:
        found: list[int] = []
        node, start = _NO_PARENT, 0
        before: Hashable = request.model
        for segment in request.segments:
            # a first segment belongs to its model; later ones do through their parent
            key = (node, segment.key if found else (before, segment.key))
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self._parent)
                self._parent.append(node)
                self._start.append(start)
                self._tokens.append(segment.tokens)
                self._uses.append(0)
                self._ends.append(0)
            self._uses[number] += 1
            start += self._tokens[number]
            node = number
            found.append(number)
        self._ends[node] += 1
        return found

    def nodes(self) -> Nodes:
        return Nodes(
            parent=np.array(self._parent, np.int64),
            start=np.array(self._start, np.int64),
            tokens=np.array(self._tokens, np.int64),
            uses=np.array(self._uses, np.int64),
            ends=np.array(self._ends, np.int64),
        )
