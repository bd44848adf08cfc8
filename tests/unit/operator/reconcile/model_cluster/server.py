"""What an API server does with objects, as far as the operator can tell: versions, applies, events."""

import copy
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any, Final, NamedTuple

import orjson

from kvtier_common.kubernetes.client import APPLY, Request, api_error
from kvtier_operator.planning.base.names import MANAGED_BY, MANAGED_BY_LABEL
from kvtier_operator.reconcile.api_server import KINDS, KVCACHETIER, NODE, POD, SECRET, Kind, Ref

Document = dict[str, Any]
OURS: Final = f"{MANAGED_BY_LABEL}={MANAGED_BY}"
_SERVED: Final = (KVCACHETIER, POD, NODE, SECRET, *(kind for kind in KINDS if not kind.optional))
_SERVERS_OWN: Final = ("uid", "resourceVersion", "generation", "managedFields", "deletionTimestamp")
_OMITTED: Final = {"Deployment": ("paused", "minReadySeconds"), "Service": ("publishNotReadyAddresses",)}
"""Fields of specs that are not stored where zero (k8s.io/api, omitempty); those that kvtier sets."""
_PATH: Final = re.compile(
    r"(?P<group>/api/v1|/apis/[^/]+/[^/]+)(/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)"
    r"(/(?P<name>[^/]+)(?P<status>/status)?)?"
)


class Change(NamedTuple):
    """One object before and after a write; None where there was or is none."""

    version: int
    ref: Ref
    before: Document | None
    after: Document | None


@dataclass(slots=True)
class Server:
    """Objects by ref, and everything that ever happened to them."""

    objects: dict[Ref, Document] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    version: int = 100
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def handle(self, request: Request) -> bytes:
        """Answers a request.

        Raises:
            KvtierError: As the client would.
        """
        match = _PATH.fullmatch(request.path)
        kind = next((each for each in _SERVED if match and _is(each, match)), None)
        if match is None or (kind is None and match["plural"] != "events"):
            raise api_error(404, {}, f"no {request.path}")
        if kind is None:
            return orjson.dumps(request.body)
        ref = Ref(kind.kind, match["namespace"] or "", match["name"] or "")
        if request.method == "POST" and isinstance(request.body, Mapping):
            return orjson.dumps(
                self._create(ref._replace(name=request.body["metadata"]["name"]), request.body)
            )
        if not ref.name:
            return self._list(ref, request.query.get("labelSelector", ""))
        return orjson.dumps(self._one(ref, request, is_status=bool(match["status"])))

    def put(self, ref: Ref, document: Document) -> Document:
        """Anybody's create or update; writes nothing where nothing changes."""
        before = self.objects.get(ref)
        new = _without_zeros(ref.kind, copy.deepcopy(document))
        metadata = new["metadata"]
        if before is None:
            metadata |= {"uid": f"uid-{next(self._numbers)}", "generation": 1}
        elif new == before:
            return copy.deepcopy(before)
        elif new.get("spec") != before.get("spec"):
            metadata["generation"] = before["metadata"]["generation"] + 1
        self._write(ref, new)
        return copy.deepcopy(new)

    def delete(self, ref: Ref) -> None:
        """Anybody's delete."""
        gone = copy.deepcopy(self.objects[ref])
        self.version += 1
        gone["metadata"]["resourceVersion"] = str(self.version)
        self.changes.append(Change(self.version, ref, self.objects.pop(ref), None))

    def since(self, version: int) -> Iterator[Change]:
        """What happened after a version."""
        first = bisect_right(self.changes, version, key=lambda each: each.version)
        return islice(self.changes, first, None)

    def applied(self, ref: Ref, body: Mapping[str, Any]) -> Document:
        """The object as it would be after kvtier's apply."""
        live = copy.deepcopy(self.objects.get(ref, {"metadata": {}}))
        previous: Document = next((field["was"] for field in live["metadata"].get("managedFields", ())), {})
        wanted = copy.deepcopy(dict(body))
        for name in _SERVERS_OWN:
            wanted["metadata"].pop(name, None)
        merged: Document = _merged(live, wanted, previous)
        merged["metadata"]["managedFields"] = [{"manager": "kvtier", "operation": "Apply", "was": wanted}]
        return _without_zeros(ref.kind, merged)

    def _create(self, ref: Ref, body: Mapping[str, Any]) -> Document:
        if ref in self.objects:
            raise api_error(409, {}, f"{ref} already exists")
        return self.put(ref, dict(body))

    def _one(self, ref: Ref, request: Request, *, is_status: bool) -> Document:
        live = self.objects.get(ref)
        uid = live["metadata"]["uid"] if live else None
        if request.content_type == APPLY and isinstance(request.body, Mapping):
            expected = request.body["metadata"].get("uid", uid)
            if expected != uid:
                raise api_error(422 if live else 409, {}, f"uid mismatch of {ref}")
            return self.put(ref, self.applied(ref, request.body))
        if live is None:
            raise api_error(404, {}, f"no {ref}")
        if request.method == "DELETE" and isinstance(request.body, Mapping):
            if request.body["preconditions"]["uid"] != uid:
                raise api_error(409, {}, f"uid mismatch of {ref}")
            self.delete(ref)
        elif is_status and isinstance(request.body, list):
            test, add = request.body
            if test["value"] != uid:
                raise api_error(422, {}, f"uid mismatch of {ref}")
            return self.put(ref, {**live, "status": add["value"]})
        return live

    def _list(self, place: Ref, selector: str) -> bytes:
        items = [
            document
            for ref, document in self.objects.items()
            if ref.kind == place.kind
            and place.namespace in ("", ref.namespace)
            and matches(document, selector)
        ]
        return orjson.dumps({"metadata": {"resourceVersion": str(self.version)}, "items": items})

    def _write(self, ref: Ref, document: Document) -> None:
        self.version += 1
        document["metadata"]["resourceVersion"] = str(self.version)
        self.changes.append(Change(self.version, ref, self.objects.get(ref), document))
        self.objects[ref] = document


def event_line(change: Change, selector: str) -> bytes | None:
    """What a watch of the objects that a selector matches says of a change; None for nothing."""
    was = change.before is not None and matches(change.before, selector)
    is_there = change.after is not None and matches(change.after, selector)
    if is_there:
        return orjson.dumps({"type": "MODIFIED" if was else "ADDED", "object": change.after})
    if not was or change.before is None:
        return None
    # as it last matched, at the version of the change (k8s.io/apiserver, pkg/storage/cacher)
    last = {
        **change.before,
        "metadata": {**change.before["metadata"], "resourceVersion": str(change.version)},
    }
    return orjson.dumps({"type": "DELETED", "object": last})


def matches(document: Document, selector: str) -> bool:
    """Whether an object carries kvtier's label, or does not, or whatever."""
    is_ours = document["metadata"].get("labels", {}).get(MANAGED_BY_LABEL) == MANAGED_BY
    return not selector or is_ours == (selector == OURS)


def _without_zeros(kind: str, document: Document) -> Document:
    spec = document.get("spec", {})
    for name in _OMITTED.get(kind, ()):
        if not spec.get(name, True):
            del spec[name]
    return document


def _is(kind: Kind, found: re.Match[str]) -> bool:
    return found["group"] == kind.group_path and found["plural"] == kind.plural


def _merged(live: Any, wanted: Any, previous: Any) -> Any:  # noqa: ANN401 - JSON
    """Maps field by field, owners by uid, other lists as a whole."""
    if isinstance(wanted, dict):
        kept = dict(live) if isinstance(live, dict) else {}
        before = previous if isinstance(previous, dict) else {}
        for name in before.keys() - wanted.keys():
            kept.pop(name, None)
        for name, value in wanted.items():
            kept[name] = (
                _merged_owners(kept.get(name) or [], value)
                if name == "ownerReferences"
                else _merged(kept.get(name), value, before.get(name))
            )
        return kept
    return wanted


def _merged_owners(live: list[Document], wanted: list[Document]) -> list[Document]:
    uids = {each["uid"] for each in wanted}
    return [*wanted, *(each for each in live if each["uid"] not in uids)]
