"""The prefixes of a resource: prompts that every engine computes before it serves, and keeps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json_object
from kvtier_common.hints import FIELD, MOST_RETAIN_S, Hints, Priority

DEFAULT_RETAIN_S: Final = 3600.0
LEAST_RETAIN_S: Final = 10.0
"""It is asked for again in half of it."""
MOST_PREFIXES: Final = 256
_MOST_NAME_CHARACTERS: Final = 63
_MOST_BYTES: Final = 16 << 20  # of a file; a ConfigMap has 1 MiB
_FORMS: Final = ("text", "messages", "tokens")


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
            prefix = read_prefix(parse_json_object(content, most_bytes=_MOST_BYTES), file.stem)
        except OSError as error:
            problems.append(f"{file}: {error.strerror}")
        except MalformedError as error:
            problems.append(f"{file}: {error}")
        else:
            if prefix.name in prefixes:
                problems.append(f"{file}: another file has a prefix named {prefix.name}; rename one")
            prefixes.setdefault(prefix.name, prefix)
    return list(prefixes.values()), problems


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
    values = {"name": default_name, "retain_s": DEFAULT_RETAIN_S, **fields}
    for name, value in values.items():
        is_right, wanted = _CHECKS[name]
        if not is_right(value):
            raise MalformedError(f"{name}: must be {wanted}")
    body: dict[str, Any] = {name: values[name] for name in ("tools", "model", "cache_salt") if name in values}
    body["messages" if is_chat else "prompt"] = values[form]
    path = "/v1/chat/completions" if is_chat else "/v1/completions"
    return Prefix(values["name"], path, body, float(values["retain_s"]))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _are_tokens(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(token, int) and not isinstance(token, bool) and token >= 0 for token in value)
    )


def _are_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MOST_NAME_CHARACTERS


def _is_retained(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and LEAST_RETAIN_S <= value <= MOST_RETAIN_S  # type: ignore[operator]


_CHECKS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "name": (_is_name, f"text of 1 to {_MOST_NAME_CHARACTERS} characters"),
    "text": (_is_text, "text, not empty"),
    "messages": (_are_objects, "a list of a chat's messages, not empty"),
    "tokens": (_are_tokens, "a list of token ids, not empty"),
    "tools": (_are_objects, "a list of objects, as in a chat request"),
    "retain_s": (_is_retained, f"{LEAST_RETAIN_S:g} to {MOST_RETAIN_S} seconds"),
    "model": (_is_text, "text, not empty"),
    "cache_salt": (_is_text, "text, not empty"),
}
"""By a field's name: what it must be, for a program and for people."""
_KNOWN: Final = _CHECKS.keys()
