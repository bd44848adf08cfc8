"""What is true of a picker's flavour whatever a resource says: checks, resources and objects ask these.

What a flavour does not say is as in most of upstream's pickers. Of a picker's end: a gateway holds its call
open until the request's answer has ended, and a call that is open when the pod has to go may last for the
ending's drain.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kvtier_operator.planning.base.ending import Ending
from kvtier_operator.planning.units import MIB

_UPSTREAM_S: Final = 30
"""What upstream's give calls under way: controller-runtime's time for what it runs (manager.go,
defaultGracefulShutdownPeriod), and the inference extension 1.4 and 1.5 and llm-d-router 0.9 leave it."""


@dataclass(frozen=True, slots=True)
class EndingInput:
    """What decides how a picker ends."""

    ending: Ending  # of its pod
    version: str  # its version
    replicas: int  # how many there are, of which one leads


@dataclass(frozen=True, slots=True)
class PickerEnding:
    """The end of a picker's process."""

    # how long it goes on as if nothing were: what calls need beyond what it gives them itself. 0 for no
    # such time
    pre_stop_s: int
    args: tuple[str, ...] = ()  # how long it gives them, for pickers that can be told


def in_upstreams_time(inputs: EndingInput) -> PickerEnding:
    """Of a picker that cannot be told how long."""
    return PickerEnding(inputs.ending.pre_stop_s + max(inputs.ending.drain_s - _UPSTREAM_S, 0))


def upstreams_args(traced: bool) -> tuple[str, ...]:
    """Profiles, on the metrics port and on by default, are off: memory's has parts of prompts."""
    return "--metrics-endpoint-auth=false", f"--tracing={str(traced).lower()}", "--enable-pprof=false"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTraits:
    """What a picker takes of memory.

    Upstream's, for an entry: some 600 bytes are live (an LRU element, its map slot, the hash's pods), and Go
    collects when there is twice as much. Measured: 1,096 to 1,217 for each of some 80,000 entries of
    llm-d-router 0.9 and 0.10, 1,250 of gaie 1.4.

    For requests: they keep the body of one until its answer has ended. Ten of 100,000 tokens are 42 MiB in
    llm-d-router 0.9 and 0.10 before Go collects, 20 MiB in gaie 1.5. A test of llm-d's own, 100 engines and
    99 of these a second, came to 3.41 GiB in all (v0.10.0, docs/operations.md).
    """

    idle_bytes: int = 512 * MIB  # with nothing to do
    bytes_per_entry: int = 1280  # for each entry of an engine's index
    in_flight_bytes: int = 48 * MIB  # for an engine's requests under way
    # whether it has a bound for all the bodies that it holds, and may come to that
    bounds_bodies: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorTraits:
    """What is true of a picker's flavour whatever a resource says."""

    title: str  # the picker, as the subject of a sentence
    image: str  # as its project publishes it, with `{version}` for the three numbers of its version
    # arguments that it takes beside those of every picker, by whether it sends traces
    args: Callable[[bool], tuple[str, ...]] = upstreams_args
    # what makes it read engines that serve HTTPS; None where it reads HTTP alone
    tls_args: tuple[str, ...] | None = ()
    endpoint_args: tuple[str, ...] = ()  # what makes it tell clients which engine served them
    ending: Callable[[EndingInput], PickerEnding] = in_upstreams_time  # how it ends
    objectives: tuple[str, ...] = ()  # API groups whose objectives and model rewrites it watches
    hit_ratio: str | None = None  # its histogram of matched prefixes; None where it has none
    memory: MemoryTraits = field(default_factory=MemoryTraits)  # what it takes of it
    # whether it adds up the metrics of several engines behind one port; others read the first series
    # alone
    adds_up_engines: bool = False
    compiles: bool = False  # whether it compiles at start, which takes time and a folder that it can write to
    # whether its health service is asked by a probe's name always; others' only where several elect a
    # leader
    knows_probes: bool = False
    needs_pool: bool = False  # whether it finds engines by an InferencePool alone, not by their labels
    # whether it answers to a body that it gets whole; others to a streamed one alone
    takes_whole_bodies: bool = False
