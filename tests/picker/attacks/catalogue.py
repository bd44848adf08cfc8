"""The attacks, a line each."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tests.picker.attacks.attackers import (
    bodies,
    events,
    explaining,
    floods,
    gateways,
    pods,
    resets,
    silent,
    windows,
)
from tests.picker.attacks.attackers.tally import Tally
from tests.picker.attacks.attackers.target import Target

Client: TypeAlias = Callable[[Target, Tally], Awaitable[None]]
Pod: TypeAlias = Callable[[Target, Tally, asyncio.Event], pods.Pod]
_MODELS: Final = {"models": [{"name": "other", "resource": "other"}]}
_TOKENIZE: Final = "tokenization: {mode: Tokenize}\n"
_EVENTS: Final = _TOKENIZE + "events: {enabled: true, port: %(events_port)d, replayPort: %(replay_port)d}\n"


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack.

    Attributes:
        says: The row of a table.
        client: Attacks a server until it is cancelled; None for a pod.
        pod: Is an engine that attacks the picker which asks it.
        config: More of the picker's configuration, with the target's ports by their names.
        alone: Whether the attacker is the only pod: the picker asks one of several.
        files: Descriptors that the server may have; 0 for as many as there are.
        new_connections: Whether the neighbour comes by a new connection each time.
        is_cut_off: Whether the attacker has to be; frames that cost a library's server next to nothing,
            and what is within every bound, need not be.
        quantile: Of the neighbour's picks whose slowdown the bench prints: less than 0.99 where those that
            come first have to wait until the picker has had enough.
        seconds: How long it goes on.
        sampled: Whether it is one of the few in `make test`.
        bare: Whether a bare server can be attacked so.
        gateway: Settings of a resource's own gateway, which is attacked then; None for the picker.
    """

    says: str
    client: Client | None = None
    pod: Pod | None = None
    config: str = ""
    alone: bool = False
    files: int = 0
    new_connections: bool = False
    is_cut_off: bool = True
    quantile: float = 0.99
    seconds: float = 4.0
    sampled: bool = False
    bare: bool = True
    gateway: Mapping[str, Any] | None = None


ATTACKS: Final = {
    "small-parts": Attack("one 32 MiB JSON body of small parts", bodies.small_parts, sampled=True),
    "allowed-parts": Attack(
        "60 JSON bodies of 7.5 MiB of small parts", bodies.allowed_parts, is_cut_off=False
    ),
    "unfinished": Attack("60 unfinished 30 MiB uploads", bodies.unfinished, seconds=8.0, sampled=True),
    "unread": Attack("60 answered 20 MiB bodies that nobody reads", bodies.unread, seconds=8.0),
    "unread-allowed": Attack(
        "60 answered 7.5 MiB bodies that nobody reads", bodies.unread_allowed, seconds=8.0
    ),
    "odd-fields": Attack("fields of another type", bodies.odd_fields, bare=False, sampled=True),
    "rapid-reset": Attack("rapid reset from 1 connection", resets.rapid_reset, sampled=True),
    "rapid-reset-20": Attack("rapid reset from 20 connections", resets.rapid_reset_20, quantile=0.9),
    "settings-of-streams": Attack(
        "SETTINGS frames of 16 KB with 10,000 streams", windows.settings_of_streams, sampled=True
    ),
    "window-updates": Attack("13 KB WINDOW_UPDATEs with 10,000 streams", windows.window_updates),
    "ping": Attack("flood of PING", floods.pings),
    "settings": Attack("flood of SETTINGS", floods.settings_frames, is_cut_off=False),
    "priority": Attack("flood of PRIORITY", floods.priorities, is_cut_off=False),
    "empty-data": Attack("flood of empty DATA", floods.empty_data),
    "continuation": Attack("flood of one-byte CONTINUATION", floods.continuations),
    "huffman": Attack("flood of Huffman", floods.huffman),
    "header-blocks": Attack("distinct header blocks, 20 connections", floods.header_blocks),
    # not sampled: in a group with other work the picker's nicest threads, which greet, hardly get to run
    "silent": Attack(
        "1,500 silent connections at 1,024 descriptors",
        silent.silent,
        files=1_024,
        new_connections=True,
        quantile=0.5,
        seconds=12.0,
    ),
    "metrics-label": Attack(
        "a pod's /metrics with one 40 KB label",
        pod=pods.metrics_label,
        is_cut_off=False,
        sampled=True,
        bare=False,
    ),
    "metrics-without-end": Attack("a pod's /metrics without end", pod=pods.metrics_without_end, bare=False),
    "metrics-samples": Attack(
        "a pod's /metrics of 100,000 samples of 1e300",
        pod=pods.metrics_samples,
        is_cut_off=False,
        bare=False,
    ),
    "metrics-gzip": Attack(
        "0.5 MB of gzip at a pod's /metrics", pod=pods.metrics_gzip, is_cut_off=False, bare=False
    ),
    "replay": Attack(
        "KV events: replay without end", pod=events.replay_without_end, config=_EVENTS, alone=True, bare=False
    ),
    "large-events": Attack(
        "KV events: 60 MB messages", pod=events.large_events, config=_EVENTS, alone=True, bare=False
    ),
    "endless-event": Attack(
        "KV events: a message of endless frames",
        pod=events.endless_event,
        config=_EVENTS,
        alone=True,
        bare=False,
    ),
    "tiny-blocks": Attack(
        "KV events: 3.75 MiB of blocks named by a byte",
        pod=events.tiny_blocks,
        config=_EVENTS,
        alone=True,
        bare=False,
    ),
    "large-blocks": Attack(
        "KV events: 4 MiB messages of blocks of 65,536 tokens",
        pod=events.large_blocks,
        config=_EVENTS,
        alone=True,
        bare=False,
    ),
    "changing-mind": Attack(
        "KV events: resets and what is none, 1,000 a second",
        pod=events.changing_mind,
        config=_EVENTS,
        alone=True,
        is_cut_off=False,
        sampled=True,
        bare=False,
    ),
    "tokenize-hanging": Attack(
        "/tokenize hanging",
        pod=pods.tokenize_hanging,
        config=_TOKENIZE,
        alone=True,
        quantile=0.5,
        bare=False,
    ),
    "tokenize-huge": Attack(
        "/tokenize huge", pod=pods.tokenize_huge, config=_TOKENIZE, alone=True, quantile=0.5, bare=False
    ),
    "gateway-integers": Attack(
        "a gateway: bodies of 7.5 to 60 MiB of integers",
        gateways.integers,
        seconds=6.0,
        bare=False,
        gateway={},
    ),
    "gateway-held": Attack(
        "a gateway: 250 uploads of 7.5 MiB that lack a byte",
        gateways.held,
        quantile=0.9,
        seconds=8.0,
        bare=False,
        gateway={},
    ),
    "models-resets": Attack(
        "a gateway of several models: rapid reset from 4 connections",
        gateways.resets,
        bare=False,
        gateway=_MODELS,
        sampled=True,
    ),
    "models-integers": Attack(
        "a gateway of several models: bodies of 7.5 to 60 MiB of integers",
        gateways.integers,
        quantile=0.95,
        seconds=6.0,
        bare=False,
        gateway=_MODELS,
        sampled=True,
    ),
    "models-held": Attack(
        "a gateway of several models: 250 uploads of 7.5 MiB that lack a byte",
        gateways.held,
        quantile=0.9,
        seconds=8.0,
        bare=False,
        gateway=_MODELS,
    ),
    "explain": Attack("/explain of 7.5 MiB bodies", explaining.explaining, is_cut_off=False, bare=False),
}
"""By name."""
