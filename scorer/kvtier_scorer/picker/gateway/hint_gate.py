"""What becomes of a request's hints: those of headers into its body, those that are not allowed out of it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_common.hints import FIELD, HEADER_PREFIX, HEADERS, NAMES, NOBODY, parse_hints, read_headers
from kvtier_scorer.config.contract import CLIENT, PRIORITY, HintPolicy, ShareFrom
from kvtier_scorer.errors import BadRequestError
from kvtier_scorer.picker.gateway.bodies import plain_path
from kvtier_scorer.picker.gateway.bodies.fields import Body
from kvtier_scorer.picker.gateway.bodies.hint_places import (
    PARAMS,
    HintPlaces,
    as_utf8,
    blank,
    find_hints,
    with_hints,
    with_last,
)
from kvtier_scorer.picker.gateway.protocol.events import RequestHead

_PATHS: Final = (
    "/v1/chat/completions",
    "/v1/chat/completions/batch",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/inference/v1/generate",
    "/cohere/v2/chat",
    "/invocations",
)
"""Whose bodies may have `kv_transfer_params` (vLLM 0.32 and 0.33). Others' get none that they do not have."""
_SHARE: Final = "share"
_NOSTORE: Final = "nostore"
_SAYS_NOSTORE: Final = re.compile(rb'"nostore"\s*:\s*true')
_AS_NONE: Final[Mapping[str, Any]] = {"retain": 0, "priority": "normal", _NOSTORE: False, "prefetch": False}
"""What says as much as no hint."""
_UNKNOWN: Final = "unknown"
_SHED_PRIORITY: Final = re.compile(r"\s*[+-]?[0-9]{1,10}\s*", re.ASCII)
_MOST_BYTES: Final = 4096
_MOST_NAMES: Final = 16
"""Of a body's hints that are read."""
_MOST_OBJECTS: Final = 64  # of hints beside the body's own that are looked at


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
        """What becomes of a request's hints; `fields` are the body's where it was read.

        Raises BadRequestError: the body is no text that the engines could read.
        """
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
        if text is None or changed is None:
            if _is_path(path):
                raise BadRequestError("the body is not JSON in UTF-8, UTF-16 or UTF-32")
            return Translation(None, removed, 0.0, tuple(_without_place(said)), said.problems)
        places = find_hints(text)
        read = _own_hints(text, places)
        if read is None and places.hints is not None and self.policy is HintPolicy.ACCEPT:
            return self._beside_unread(text, places, places.hints, said, removed)
        hidden = _hidden(text, places.objects if read is None else _beside(places))
        own = hidden if read is None else read
        dropped = {name for name, value in own.items() if not self._takes(name, value)}
        kept = {name: value for name, value in own.items() if name not in dropped | said.names}
        counts = [*_counts(kept), *(HintCount(_known(name), Outcome.NOT_ALLOWED) for name in dropped)]
        problems = _problems(kept)
        # those that are none may be anything; a good one is a word or a number
        kept = {name: value for name, value in kept.items() if isinstance(value, str | int | float)}
        if not self._takes_all and len(places.objects):
            counts += [] if read else [HintCount(_UNKNOWN, Outcome.NOT_ALLOWED)]
            changed = blank(text, places.objects)
        if _NOSTORE not in said.names:
            kept = {**hidden, **kept}
        merged = {**kept, **said.params}
        # a hint that says as much as none still takes the place of the body's
        placed = None
        if (said.names and (merged or places.hints)) or (kept and not self._takes_all):
            placed = with_hints(changed, places, _text_of(merged), may_add=_is_path(path) and bool(merged))
        stands = placed is not None or not said.params
        changed = changed if placed is None else placed
        return Translation(
            None if changed is text else changed,
            removed,
            parse_hints(merged if stands else kept)[0].retain_s,
            (*counts, *(said.counts if stands else _without_place(said))),
            (*said.problems, *problems),
        )

    def _takes(self, name: str, value: object) -> bool:
        """Whether that hint of a body stays where no header says the same."""
        if name == _NOSTORE and value is True:
            return True  # under every policy: it takes nothing from anybody
        return self.policy is HintPolicy.ACCEPT and (
            name != _SHARE or self.share_from is not ShareFrom.CLIENT
        )

    def _beside_unread(
        self,
        text: bytes,
        places: HintPlaces,
        own: tuple[int, int],
        said: _Said,
        removed: tuple[str, ...],
    ) -> Translation:
        """The body's own hints, which cannot be read, stay; headers' come behind them, and count."""
        others = _beside(places)
        changed = text if self._takes_all or not len(others) else blank(text, others)
        if said.names:
            # also those that say as much as none, for the body may say more
            members = {name: said.params.get(name, _AS_NONE.get(name)) for name in said.names}
            changed = (
                with_last(changed, own, _text_of(members)[1:-1])
                or with_hints(changed, places, _text_of(said.params), may_add=False)
                or changed
            )
        return Translation(
            None if changed is text else changed,
            removed,
            parse_hints(said.params)[0].retain_s,
            (HintCount(_UNKNOWN, Outcome.BAD_VALUE), *said.counts),
            (*said.problems, "of a body: unread, for it is too long, too deep or not JSON"),
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
            if self.policy is HintPolicy.REFUSE and not (from_gateway or hints.never_store):
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
        if self.share_from is ShareFrom.CLIENT and _SHARE not in names:
            # without a share the engine would take cache_salt's, which clients write
            names.add(_SHARE)
            params[_SHARE] = NOBODY
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


def _own_hints(body: bytes, places: HintPlaces) -> Mapping[str, Any] | None:
    """The body's own hints, known ones before others; None where they cannot be read."""
    if places.hints is None:
        return {}
    start, end = places.hints
    if body[start : start + 1] != b"{":
        return {}
    if end - start > _MOST_BYTES:
        return None
    try:
        hints = parse_json(body[start:end], finite=False)
    except MalformedError:
        return None
    if not isinstance(hints, dict):
        return None
    known_first = sorted(hints, key=lambda name: name not in NAMES)
    return {name: hints[name] for name in known_first[:_MOST_NAMES]}


def _beside(places: HintPlaces) -> NDArray[np.int64]:
    """Objects of hints that are not the body's own."""
    return places.objects if places.hints is None else places.objects[places.objects[:, 0] != places.hints[0]]


def _hidden(body: bytes, objects: NDArray[np.int64]) -> Mapping[str, Any]:
    """What is kept of hints that are not read and may be taken out: that blocks are not to be stored."""
    spans = objects[:_MOST_OBJECTS].tolist()
    says = any(_SAYS_NOSTORE.search(body, start, end) for start, end in spans)
    return {_NOSTORE: True} if says else {}


def _text_of(hints: Mapping[str, Any]) -> bytes:
    return json.dumps(hints, separators=(",", ":")).encode()


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
    return plain_path(path).endswith(_PATHS)
