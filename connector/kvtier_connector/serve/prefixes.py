"""The prefixes of a resource: prompts that every engine computes before it serves, and keeps."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json, parse_json_object
from kvtier_common.hints import FIELD, MOST_RETAIN_S, Hints, Priority

DEFAULT_RETAIN_S: Final = 3600.0
LEAST_RETAIN_S: Final = 10.0
"""It is asked for again in half of it."""
MOST_PREFIXES: Final = 256
_MOST_NAME_CHARACTERS: Final = 63
_MOST_BYTES: Final = 16 << 20  # of a file; a ConfigMap has 1 MiB
_FORMS: Final = ("text", "messages", "tokens")
_DURATION: Final = re.compile("(0|[1-9][0-9]{0,4})([smh])")
"""As the resource's own `retain` is written."""
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Prefix:
    """One prefix, and the request that has it computed."""

    name: str
    path: str  # of the API's
    body: Mapping[str, Any]  # without what is said of every prefix
    retain_s: float = DEFAULT_RETAIN_S  # for how long after each time it is asked for

    def request(self) -> dict[str, Any]:
        """Return the body that has it computed and kept, with as little output as there is."""
        hints = Hints(retain_s=self.retain_s, priority=Priority.HIGH)
        return {
            **self.body,
            "max_tokens": 1,
            "temperature": 0,
            "kv_transfer_params": {FIELD: hints.to_params()},
        }


def read_prefixes(folder: Path) -> tuple[list[Prefix], list[str]]:
    """Read a folder's `*.json`, one prefix each, by their names' order.

    Returns the prefixes, and a line for each file that has none.
    """
    prefixes: dict[str, Prefix] = {}
    problems: list[str] = []
    try:
        files = sorted(folder.glob("*.json"))
    except OSError as error:
        return [], [f"{folder}: {error.strerror}"]
    if len(files) > MOST_PREFIXES:
        problems.append(f"{folder}: only {MOST_PREFIXES} of {len(files)} prefixes are read")
    for file in files[:MOST_PREFIXES]:
        try:
            with file.open("rb") as opened:
                content = opened.read(_MOST_BYTES + 1)
            prefix = read_prefix(fields_of(content), file.stem)
        except OSError as error:
            problems.append(f"{file}: {error.strerror}")
        except MalformedError as error:
            problems.append(f"{file}: {error}")
        else:
            if prefix.name in prefixes:
                problems.append(f"{file}: another file has a prefix named {prefix.name}; rename one")
            prefixes.setdefault(prefix.name, prefix)
    return list(prefixes.values()), problems


def fields_of(content: bytes) -> Mapping[str, Any]:
    """The fields of a prefix's file: of its JSON object, or its whole content as `text` where it is not JSON.

    What begins as an object does is JSON with a mistake. Raises MalformedError: one line.
    """
    if len(content) > _MOST_BYTES:
        raise MalformedError(f"more than {_MOST_BYTES >> 20} MiB")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise MalformedError("is neither JSON nor text in UTF-8") from error
    if not text.strip():
        raise MalformedError("is empty: write the prefix's text, or a JSON object")
    try:
        parse_json(content, most_bytes=_MOST_BYTES)
    except MalformedError:
        if not text.lstrip().startswith("{"):
            return {"text": text}
    return parse_json_object(content, most_bytes=_MOST_BYTES)


def read_prefix(fields: Mapping[str, Any], default_name: str) -> Prefix:
    """Read one prefix. Raises MalformedError: one line that says what is wrong and what would do."""
    if unknown := sorted(fields.keys() - _KNOWN):
        raise MalformedError(f"{unknown[0]}: unknown; known are {', '.join(sorted(_KNOWN))}")
    forms = [form for form in _FORMS if form in fields]
    if len(forms) != 1:
        raise MalformedError(f"must have exactly one of {', '.join(_FORMS)}")
    [form] = forms
    is_chat = form == "messages"
    if "tools" in fields and not is_chat:
        raise MalformedError("tools: only with messages")
    if "retain" in fields and "retain_s" in fields:
        raise MalformedError("must have only one of retain and retain_s")
    values = {"name": default_name, **fields}
    for name, value in values.items():
        is_right, wanted = _CHECKS[name]
        if not is_right(value):
            raise MalformedError(f"{name}: must be {wanted}")
    body: dict[str, Any] = {name: values[name] for name in ("tools", "model", "cache_salt") if name in values}
    body["messages" if is_chat else "prompt"] = values[form]
    path = "/v1/chat/completions" if is_chat else "/v1/completions"
    return Prefix(values["name"], path, body, _retained_s(values))


def _retained_s(values: Mapping[str, Any]) -> float:
    if "retain" in values:
        return float(_seconds_of(values["retain"]) or 0)
    return float(values.get("retain_s", DEFAULT_RETAIN_S))


def _seconds_of(duration: object) -> int | None:
    """Seconds of a text such as 24h; None where it is none."""
    match = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    return int(match[1]) * _UNIT_S[match[2]] if match else None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def are_tokens(value: object) -> bool:
    """Tell whether a value of JSON is token ids, at least one."""
    return (
        isinstance(value, list) and bool(value) and all(type(token) is int and token >= 0 for token in value)
    )


def _are_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MOST_NAME_CHARACTERS


def _is_retained(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and LEAST_RETAIN_S <= value <= MOST_RETAIN_S  # type: ignore[operator]


def _is_duration(value: object) -> bool:
    return _is_retained(_seconds_of(value))


_CHECKS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "name": (_is_name, f"text of 1 to {_MOST_NAME_CHARACTERS} characters"),
    "text": (_is_text, "text, not empty"),
    "messages": (_are_objects, "a list of a chat's messages, not empty"),
    "tokens": (are_tokens, "a list of token ids, not empty"),
    "tools": (_are_objects, "a list of objects, as in a chat request"),
    "retain": (_is_duration, "text from 10s to 24h, such as 90s, 30m or 24h"),
    "retain_s": (_is_retained, f"{LEAST_RETAIN_S:g} to {MOST_RETAIN_S} seconds"),
    "model": (_is_text, "text, not empty"),
    "cache_salt": (_is_text, "text, not empty"),
}
"""By a field's name: what it must be, for a program and for people."""
_KNOWN: Final = _CHECKS.keys()
