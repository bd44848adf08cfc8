"""Where a body has hints, found in its text: bodies are changed in that place, and never written anew.

Keys are compared as a parser reads them: with escapes, and of several equal ones the last counts. Nothing
else is checked; of what is no JSON the answer may be anything within the text.
"""

import json
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvtier_common.hints import FIELD
from kvtier_scorer.index.compiled import compiled_beside, compiled_part

PARAMS: Final = "kv_transfer_params"
_MOST_DEPTH: Final = 1 << 16
"""Of what is looked at. Engines do not read as deep: Python's own reader ends at 10,000 at most."""
_FIRST_SPANS: Final = 8
_ESCAPE_BYTES: Final = 6  # \\u006b
_UNICODE_ESCAPE: Final = b"\\u"
_SPACES: Final = b" \t\r\n"

_OF_PARAMS, _OF_HINTS = 1, 2  # what a value is the value of
_PARAMS = np.frombuffer(PARAMS.encode(), np.uint8)
_HINTS = np.frombuffer(FIELD.encode(), np.uint8)
_QUOTE, _BACKSLASH, _COMMA, _COLON, _OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST, _U, _SPACE = (
    np.uint8(ord(sign)) for sign in '"\\,:{}[]u '
)


class HintPlaces(NamedTuple):
    """Values of a body by their first byte and the one behind their last."""

    params: tuple[int, int] | None  # of the body's own `kv_transfer_params`
    hints: tuple[int, int] | None  # of `kvtier` in it
    # of every object that is a `kvtier` of `kv_transfer_params`, however deep, but in no other such; (n, 2)
    objects: NDArray[np.int64]


_NOWHERE: Final = HintPlaces(None, None, np.empty((0, 2), np.int64))


def find_hints(body: bytes) -> HintPlaces:
    """Where the body's hints are."""
    # without either there is no such key, and these are found ten times as fast
    if PARAMS.encode() not in body and _UNICODE_ESCAPE not in body:
        return _NOWHERE
    text = np.frombuffer(body, np.uint8)
    found = np.empty(4, np.int64)
    objects = np.empty((_FIRST_SPANS, 2), np.int64)
    count = _locate(text, found, objects)
    if count > len(objects):
        objects = np.empty((count, 2), np.int64)
        _locate(text, found, objects)
    params_at, params_end, hints_at, hints_end = found.tolist()
    return HintPlaces(
        (params_at, params_end) if params_at < params_end else None,
        (hints_at, hints_end) if hints_at < hints_end else None,
        objects[:count],
    )


def blank(body: bytes, objects: NDArray[np.int64]) -> bytes:
    """The body with an empty object in each of those places, and as long as before."""
    text = np.frombuffer(body, np.uint8).copy()
    _blank(text, objects)
    return text.tobytes()


def with_hints(body: bytes, places: HintPlaces, hints: bytes, *, may_add: bool) -> bytes | None:
    """The body with that JSON text as its hints; None where there is no place for it.

    `may_add`: whether the body may get a `kv_transfer_params` that it does not have.
    """
    if places.hints is not None:
        return _replaced(body, places.hints, hints)
    inner = b'"%b":%b' % (FIELD.encode(), hints)
    if places.params is not None:
        start, end = places.params
        if body[start:end] == b"null":
            return _replaced(body, places.params, b"{%b}" % inner)
        return _added(body, start, inner)
    return _added(body, 0, b'"%b":{%b}' % (PARAMS.encode(), inner)) if may_add else None


def with_last(body: bytes, place: tuple[int, int], members: bytes) -> bytes | None:
    """The body with those members, JSON text, behind all others of the object there, so that they count.

    None where no object with members is there.
    """
    start, end = place
    if (
        body[start : start + 1] != b"{"
        or body[end - 1 : end] != b"}"
        or _past_spaces(body, start + 1) == end - 1
    ):
        return None
    return _replaced(body, (end - 1, end - 1), b"," + members)


def as_utf8(body: bytes) -> bytes | None:
    """A JSON text in UTF-8 without a mark: engines also read UTF-16 and UTF-32, and halves of surrogates.

    None where it is in another encoding and no such text; engines cannot read it then.
    """
    encoding = json.detect_encoding(body)
    if encoding == "utf-8":
        return body
    try:
        # a half, which UTF-8 has no bytes for, becomes its escape
        text = body.decode(encoding, "surrogatepass").encode("utf-8", "backslashreplace")
    except UnicodeError:
        return None
    return text if text.lstrip(_SPACES)[:1] in {b"{", b"["} else None


def prepare_kernels() -> None:
    """Load or compile the kernels, so that no request waits for them."""
    blank(body := b'{"%b":{"%b":{}}}' % (PARAMS.encode(), FIELD.encode()), find_hints(body).objects)


def _replaced(body: bytes, place: tuple[int, int], new: bytes) -> bytes:
    view = memoryview(body)
    return b"".join((view[: place[0]], new, view[place[1] :]))


def _added(body: bytes, start: int, member: bytes) -> bytes | None:
    """With one more member, the first, in the object that begins there, if one does."""
    at = _past_spaces(body, start)
    if body[at : at + 1] != b"{":
        return None
    after = _past_spaces(body, at + 1)
    separator = b"" if body[after : after + 1] == b"}" else b","
    return _replaced(body, (at + 1, at + 1), member + separator)


def _past_spaces(body: bytes, at: int) -> int:
    while body[at : at + 1] and body[at] in _SPACES:
        at += 1
    return at


@compiled_beside
def _locate(  # noqa: C901, PLR0912 - one loop over the text: a kernel's parts share no state
    text: NDArray[np.uint8], found: NDArray[np.int64], objects: NDArray[np.int64]
) -> int:
    """Write the body's own params and hints into `found`, hint objects into `objects`; return how many."""
    found[:] = -1
    kinds = np.zeros(_MOST_DEPTH, np.uint8)  # of the object or list that is open at each depth
    starts = np.empty(_MOST_DEPTH, np.int64)
    depth = count = at = kind = open_hints = 0
    size = len(text)
    while at < size:
        byte = text[at]
        if byte in (_OPEN, _OPEN_LIST):
            depth += 1
            if depth == _MOST_DEPTH:
                break
            kinds[depth] = kind
            starts[depth] = at
            open_hints += kind == _OF_HINTS
            kind = 0
            at += 1
        elif byte in (_CLOSE, _CLOSE_LIST):
            at += 1
            if depth == 0:
                break
            if kinds[depth] == _OF_HINTS:
                open_hints -= 1
                if open_hints == 0 and text[starts[depth]] == _OPEN:
                    if count < len(objects):
                        objects[count, 0], objects[count, 1] = starts[depth], at
                    count += 1
            depth -= 1
            _note(found, depth, kinds[depth + 1], kinds[2], starts[depth + 1], at)
        elif byte in (_COMMA, _COLON) or byte <= _SPACE:
            at += 1
        else:
            end = _end_of_scalar(text, at)
            if byte == _QUOTE and _is_key(text, end):
                kind = 0
                if _spells(text, at + 1, end - 1, _PARAMS):
                    kind = _OF_PARAMS
                elif kinds[depth] == _OF_PARAMS and _spells(text, at + 1, end - 1, _HINTS):
                    kind = _OF_HINTS
            else:
                _note(found, depth, kind, kinds[2], at, end)
                kind = 0
            at = end
    return count


@compiled_part
def _note(  # noqa: PLR0913, PLR0917 - of one value
    found: NDArray[np.int64], depth: int, kind: int, second: int, start: int, end: int
) -> None:
    """Note a value that ended, at the depth of the object that it is in, if it is one of the body's own."""
    if kind == _OF_PARAMS and depth == 1:
        # hints that were found are in this value, or in one of the same name that no longer counts
        if found[2] < start:
            found[2] = found[3] = -1
        found[0], found[1] = start, end
    elif kind == _OF_HINTS and depth == 2 and second == _OF_PARAMS:  # noqa: PLR2004 - params are in the body
        found[2], found[3] = start, end


@compiled_part
def _end_of_scalar(text: NDArray[np.uint8], at: int) -> int:
    """The place behind a string, number or word."""
    size = len(text)
    if text[at] != _QUOTE:
        while at < size:
            byte = text[at]
            if byte in (_COMMA, _CLOSE, _CLOSE_LIST, _QUOTE) or byte <= _SPACE:
                return at
            at += 1
        return at
    at += 1
    while at < size and text[at] != _QUOTE:
        at += 2 if text[at] == _BACKSLASH else 1
    return min(at + 1, size)


@compiled_part
def _is_key(text: NDArray[np.uint8], at: int) -> bool:
    """Whether a string that ends there is a member's name."""
    while at < len(text) and text[at] <= _SPACE:
        at += 1
    return bool(at < len(text) and text[at] == _COLON)


@compiled_part
def _spells(text: NDArray[np.uint8], at: int, end: int, name: NDArray[np.uint8]) -> bool:
    """Whether the string's content is that name, some of its letters written as escapes or not."""
    for letter in name:
        if at >= end:
            return False
        if text[at] == _BACKSLASH:
            if at + _ESCAPE_BYTES > end or text[at + 1] != _U or _code(text, at + 2) != letter:
                return False
            at += _ESCAPE_BYTES
        elif text[at] == letter:
            at += 1
        else:
            return False
    return at == end


@compiled_part
def _code(text: NDArray[np.uint8], at: int) -> int:
    """Four hexadecimal digits as a number; -1 for others."""
    code = 0
    for i in range(at, at + 4):
        digit = int(text[i])
        if 48 <= digit <= 57:  # noqa: PLR2004 - 0 to 9
            digit -= 48
        elif 97 <= (digit | 32) <= 102:  # noqa: PLR2004 - a to f
            digit = (digit | 32) - 87
        else:
            return -1
        code = 16 * code + digit
    return code


@compiled_beside
def _blank(text: NDArray[np.uint8], objects: NDArray[np.int64]) -> None:
    for i in range(len(objects)):
        start, end = objects[i, 0], objects[i, 1]
        text[start:end] = _SPACE
        text[start] = _OPEN
        text[start + 1] = _CLOSE
