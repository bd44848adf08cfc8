"""What a cluster's owner lets resources ask for."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final

from pydantic.alias_generators import to_camel

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_operator.api.formats import LABEL, SUBDOMAIN
from kvtier_operator.api.schema.complaints import show_value
from kvtier_operator.api.spec.router import HOST_PATTERN
from kvtier_operator.errors import InvalidInputError, Problem

_FOLDER: Final = r"([^./][^/]*|\.[^./][^/]*|\.\.[^/]+)"
"""A name that is neither `.` nor `..`, by which a path could mean another."""
_HOST: Final = "[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]+)?"
_PART: Final = "[a-z0-9][a-z0-9._-]*"
_REPOSITORY: Final = f"([a-z0-9][a-z0-9_-]*|{_HOST}(/{_PART})+)"
"""One part alone has no dot: that would be a host, which allows nothing without the `/` at its end."""
_TAG: Final = "(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?"


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries that one limit's list may have."""

    pattern: str  # regular expression of a whole one, as Python and Go's RE2 have it
    form: str  # what it is and an example, for the error

    def fits(self, entry: object) -> bool:
        """Whether it is one."""
        return isinstance(entry, str) and re.fullmatch(self.pattern, entry) is not None


ENTRIES: Final[Mapping[str, Entries]] = {
    "host_path": Entries(f"^/({_FOLDER}(/{_FOLDER})*/?)?$", "a folder's whole path such as /mnt/nvme0"),
    "images": Entries(
        f"^({_REPOSITORY}{_TAG}|{_HOST}/({_PART}/)*)$",
        "a repository such as registry.example/team/engine, or the start of one that ends in /",
    ),
    "host_names": Entries(HOST_PATTERN, "a host name such as llm.example.com or *.team.example.com"),
    "foreign_gateways": Entries(f"^{LABEL}(/{SUBDOMAIN})?$", "NAMESPACE or NAMESPACE/NAME"),
}
"""By limit; the others are no lists."""


ALLOW: Final = "allow"
DENY: Final = "deny"
Limit = str | tuple[str, ...]
"""`allow`, `deny` or a list of what is allowed."""


@dataclass(frozen=True, slots=True)
class OwnerPolicy:
    """One limit a kind of thing. All is allowed until somebody says otherwise."""

    host_path: Limit = ALLOW  # folders of the node; a list has these folders, without what is below them
    # engines that are root, which a folder of the node and IPC_LOCK make them; no list
    root_engines: Limit = ALLOW
    ipc_lock: Limit = ALLOW  # the capability IPC_LOCK; no list
    # images that resources name; a list has repositories, or starts of them that end in `/`
    images: Limit = ALLOW
    # host names of routes; a list has names, or `*.` and all below. Denied: no route
    host_names: Limit = ALLOW
    # gateways of other namespaces; a list has `NAMESPACE` or `NAMESPACE/NAME`
    foreign_gateways: Limit = ALLOW
    pod_templates: Limit = ALLOW  # what resources add to their pods by a podTemplate; no list


def policy_document(policy: OwnerPolicy) -> dict[str, object]:
    """The same as plain values."""
    return {to_camel(field.name): getattr(policy, field.name) for field in fields(OwnerPolicy)}


def owner_policy(document: object, source: str, within: str = "") -> OwnerPolicy:
    """Reads one, in camelCase as the chart's `operator.policy` has it.

    Args:
        document: Plain values of YAML or JSON.
        source: Where it came from, for the error.
        within: Path of the policy in a larger document, for the error.

    Raises:
        InvalidInputError: With one problem for every wrong limit, and for every wrong entry of a list.
    """
    names = {to_camel(field.name): field.name for field in fields(OwnerPolicy)}
    if not isinstance(document, Mapping):
        known = ", ".join(names)
        given = "it is empty" if document is None else f"it is {show_value(document)}"
        message = f"not a mapping with any of {known}; write {{}} for no limit; {given}"
        raise InvalidInputError(source, Problem(within, message))
    start = f"{within}." if within else ""
    problems = [
        Problem(f"{start}{key}{where}", problem)
        for key, value in document.items()
        for where, problem in _problems(names.get(str(key)), value, names)
    ]
    if problems:
        raise InvalidInputError(source, *problems)
    limits = {
        names[key]: tuple(value) if isinstance(value, list) else value for key, value in document.items()
    }
    return OwnerPolicy(**limits)


def policy_of_text(text: str, source: str) -> OwnerPolicy:
    """The same from JSON.

    Raises:
        InvalidInputError: It is none, or a limit is wrong.
    """
    try:
        # of a limit that is there twice, the second might take back the first
        document = parse_json(text, unique_keys=True)
    except MalformedError as error:
        message = f"cannot be read as JSON: {error}; it is {show_value(text)}"
        raise InvalidInputError(source, Problem("", message)) from error
    return owner_policy(document, source)


def _problems(name: str | None, value: object, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is wrong with one limit: where in it, and what to write."""
    if name is None:
        yield "", f"unknown limit; there are {', '.join(names)}"
    elif value in (ALLOW, DENY):
        return
    elif name not in ENTRIES:
        yield "", f"write allow or deny; it is {show_value(value)}"
    elif not isinstance(value, list):
        yield "", f"write allow, deny or a list of what is allowed; it is {show_value(value)}"
    else:
        entries = ENTRIES[name]
        wrong = [position for position, entry in enumerate(value) if not entries.fits(entry)]
        for position in wrong:
            yield f"[{position}]", f"write {entries.form}; it is {show_value(value[position])}"
        if name == "host_path" and not wrong and (fault := _nesting_fault(value)):
            yield "", fault


def _nesting_fault(folders: list[str]) -> str:
    for outer in folders:
        for inner in folders:
            if inner.startswith(f"{outer.rstrip('/')}/") and inner.rstrip("/") != outer.rstrip("/"):
                return f"{inner} is below {outer}, in which an engine could put a link in its place: list one"
    return ""


def permits(limit: Limit, name: str) -> bool:
    """Whether a limit lets `NAMESPACE/NAME` pass: by itself, or by its namespace."""
    if isinstance(limit, str):
        return limit == ALLOW
    return any(name == entry or name.startswith(f"{entry}/") for entry in limit)


def limit_text(limit: Limit) -> str:
    """What a refusal says of a limit."""
    return "none" if isinstance(limit, str) else ", ".join(limit) or "none"
