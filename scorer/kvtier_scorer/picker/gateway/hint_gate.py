"""What becomes of a request's hints: those of headers into its body, those that are not allowed out of it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from kvtier_common.hints import FIELD, HEADER_PREFIX, HEADERS, NAMES, parse_hints, read_headers
from kvtier_scorer.config.contract import CLIENT, PRIORITY, HintPolicy, ShareFrom
from kvtier_scorer.picker.gateway.bodies.fields import Body
from kvtier_scorer.picker.gateway.bodies.hint_places import (
    PARAMS,
    HintPlaces,
    as_utf8,
    blank,
    find_hints,
    with_hints,
)
from kvtier_scorer.picker.gateway.protocol.events import RequestHead

_PATHS: Final = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages")
"""Whose bodies may have `kv_transfer_params` (vLLM 0.32 and 0.33). Others' get none that they do not have."""
_SHARE: Final = "share"
_UNKNOWN: Final = "unknown"
_SHED_PRIORITY: Final = re.compile(r"\s*[+-]?[0-9]{1,10}\s*", re.ASCII)
_MOST_BYTES: Final = 4096
_MOST_NAMES: Final = 16
"""Of a body's hints that are read; whoever writes more has none."""


class Outcome(StrEnum):
    """What became of one hint."""

    ACCEPTED = "accepted"
    BAD_VALUE = "bad_value"  # of no such hint, or of one that is not known
    SEVERAL_VALUES = "several_values"  # headers of one name that may differ
    NOT_ALLOWED = "not_allowed"  # by the configuration
    NO_PLACE = "no_place"  # for a header's: the request has no body that takes hints


class HintCount(NamedTuple):
    """One hint, by its name or as `unknown`, and what became of it."""

    hint: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Translation:
    """What of a request changes on its way to the engine, and what its hints promise."""

    body: bytes | None = None  # None: stays as it is
    removed_headers: tuple[str, ...] = ()
    retain_s: float = 0.0  # for how long the prompt is likely to be used again
    counts: tuple[HintCount, ...] = ()
    problems: tuple[str, ...] = ()  # of hints that were dropped, one line each, without what clients wrote


NOTHING: Final = Translation()


class _Said(NamedTuple):
    """What headers say."""

    names: frozenset[str]  # of hints that stand, those that say as much as none among them
    params: Mapping[str, Any]  # them as a body has them
    counts: tuple[HintCount, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HintGate:
    """Lets hints through, or not."""

    policy: HintPolicy = HintPolicy.ACCEPT
    share_from: ShareFrom = ShareFrom.HEADER

    @property
    def _takes_all(self) -> bool:
        """Whether a body's own hints stay whatever they are."""
        return self.policy is HintPolicy.ACCEPT and self.share_from is ShareFrom.HEADER

    def translate(self, head: RequestHead, body: bytes | None, fields: Body) -> Translation:
        """What becomes of a request's hints; `fields` are the body's where it was read. Never raises."""
        texts = _header_texts(head.headers)
        if not texts and self._takes_all:
            return self._unchanged(fields)
        removed = tuple(HEADER_PREFIX + name for name in texts)
        said = self._said(texts, head.headers.get(CLIENT))
        if body is None:
            return Translation(None, removed, 0.0, tuple(_without_place(said)), said.problems)
        return self._changed(head.path, body, said, removed)

    def _unchanged(self, fields: Body) -> Translation:
        params = fields.get(PARAMS)
        if not isinstance(params, dict) or FIELD not in params:
            return NOTHING
        hints = params[FIELD]
        if not isinstance(hints, dict) or len(hints) > _MOST_NAMES:
            return Translation(counts=(HintCount(_UNKNOWN, Outcome.BAD_VALUE),), problems=_problems(hints))
        return Translation(
            retain_s=parse_hints(hints)[0].retain_s, counts=tuple(_counts(hints)), problems=_problems(hints)
        )

    def _changed(self, path: str, body: bytes, said: _Said, removed: tuple[str, ...]) -> Translation:
        text = changed = as_utf8(body)
        places = find_hints(text)
        own = _own_hints(text, places)
        dropped = {
            name
            for name in own
            if self.policy is not HintPolicy.ACCEPT
            or (name == _SHARE and self.share_from is ShareFrom.CLIENT)
        }
        kept = {name: value for name, value in own.items() if name not in dropped | said.names}
        counts = [*_counts(kept), *(HintCount(_known(name), Outcome.NOT_ALLOWED) for name in dropped)]
        problems = _problems(kept)
        # those that are none may be anything; a good one is a word or a number
        kept = {name: value for name, value in kept.items() if isinstance(value, str | int | float)}
        if not self._takes_all and len(places.objects):
            counts += [] if own else [HintCount(_UNKNOWN, Outcome.NOT_ALLOWED)]
            changed = blank(text, places.objects)
        merged = {**kept, **said.params}
        # a hint that says as much as none still takes the place of the body's
        placed = None
        if (said.names and (merged or places.hints)) or (kept and not self._takes_all):
            placed = with_hints(
                changed, places, orjson.dumps(merged), may_add=_is_path(path) and bool(merged)
            )
        stands = placed is not None or not said.params
        changed = changed if placed is None else placed
        return Translation(
            None if changed is text else changed,
            removed,
            parse_hints(merged if stands else kept)[0].retain_s,
            (*counts, *(said.counts if stands else _without_place(said))),
            (*said.problems, *problems),
        )

    def _said(self, texts: Mapping[str, str], client: str | None) -> _Said:
        counts: list[HintCount] = []
        problems: list[str] = []
        names: set[str] = set()
        params: dict[str, Any] = {}
        if self.share_from is ShareFrom.CLIENT:
            if _SHARE in texts:
                counts.append(HintCount(_SHARE, Outcome.NOT_ALLOWED))
            share = {} if client is None else {_SHARE: client}
            texts = {**{name: text for name, text in texts.items() if name != _SHARE}, **share}
        for name, text in texts.items():
            hints, wrong = read_headers({HEADER_PREFIX + name: text})
            from_gateway = name == _SHARE and self.share_from is ShareFrom.CLIENT
            if self.policy is HintPolicy.REFUSE and not from_gateway:
                outcome = Outcome.NOT_ALLOWED
            elif "," in text:
                outcome = Outcome.SEVERAL_VALUES
                problems.append(f"{HEADER_PREFIX}{name}: must be there once")
            elif wrong:
                outcome = Outcome.BAD_VALUE
                problems += (f"{HEADER_PREFIX}{line}" for line in wrong)
            else:
                outcome = Outcome.ACCEPTED
                names.add(name)
                params |= hints.to_params()
            counts.append(HintCount(name, outcome))
        return _Said(frozenset(names), params, tuple(counts), tuple(problems))


def _header_texts(headers: Mapping[str, str]) -> dict[str, str]:
    """The hints among the headers, by name; a number in PRIORITY is none, but says what may be shed."""
    return {
        name.removeprefix(HEADER_PREFIX): text
        for name in HEADERS
        if (text := headers.get(name)) is not None and not (name == PRIORITY and is_shed_priority(text))
    }


def is_shed_priority(text: str) -> bool:
    """Whether that header is a number, by which requests are shed."""
    return _SHED_PRIORITY.fullmatch(text) is not None


def _own_hints(body: bytes, places: HintPlaces) -> Mapping[str, Any]:
    if places.hints is None:
        return {}
    start, end = places.hints
    if end - start > _MOST_BYTES:
        return {}
    try:
        hints = orjson.loads(body[start:end])
    except orjson.JSONDecodeError:
        return {}
    return hints if isinstance(hints, dict) and len(hints) <= _MOST_NAMES else {}


def _counts(hints: Mapping[str, Any]) -> Iterator[HintCount]:
    for name, said in islice(hints.items(), _MOST_NAMES):
        bad = bool(parse_hints({name: said})[1])
        yield HintCount(_known(name), Outcome.BAD_VALUE if bad else Outcome.ACCEPTED)


def _without_place(said: _Said) -> Sequence[HintCount]:
    return [
        HintCount(hint, Outcome.NO_PLACE if outcome is Outcome.ACCEPTED else outcome)
        for hint, outcome in said.counts
    ]


def _known(name: str) -> str:
    return name if name in NAMES else _UNKNOWN


def _problems(hints: object) -> tuple[str, ...]:
    return tuple(f"of a body: {line}" for line in parse_hints(hints)[1][:1])


def _is_path(path: str) -> bool:
    return path.partition("?")[0].rstrip("/").endswith(_PATHS)
