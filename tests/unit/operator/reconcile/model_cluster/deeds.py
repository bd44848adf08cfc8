"""What somebody other than the operator does to one of its objects."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.unit.operator.reconcile.model_cluster.cluster import Cluster
from tests.unit.operator.reconcile.model_cluster.server import Document

from kvtier_operator.planning.base.names import MANAGED_BY_LABEL
from kvtier_operator.reconcile.api_server import Ref

_STRIPPED: Final = ("labels", "annotations", "ownerReferences", MANAGED_BY_LABEL)
DEEDS: Final = (
    "edit",
    "take out",
    "add label",
    "add annotation",
    "write status",
    "delete",
    "delete slowly",
    "replace",
    *(f"strip {each}" for each in _STRIPPED),
)


def do(cluster: Cluster, deed: str, ref: Ref, number: int) -> None:
    """Does it, if the object is there; `number` says to which of its fields, or with what."""
    if ref not in cluster.server.objects:
        return
    if deed == "delete":
        cluster.server.delete(ref)
        return
    live_object = copy.deepcopy(cluster.server.objects[ref])
    metadata, paths = live_object["metadata"], content_leaves(live_object)
    match deed.split():
        case ["edit"]:
            _edit(live_object, paths[number % len(paths)])
        case ["take", "out"]:
            # the API server wants every field of an owner
            removable = [path for path in paths if "ownerReferences" not in path]
            _take_out(live_object, removable[number % len(removable)])
        case ["add", what]:
            metadata.setdefault(f"{what}s", {})["someone/else"] = "was here"
        case ["write", "status"]:
            live_object["status"] = {"readyReplicas": number % 4}
        case ["delete", "slowly"]:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        case ["strip", field]:
            (metadata if field in metadata else metadata.get("labels", {})).pop(field, None)
        case _:
            cluster.replace(ref, _someones(live_object, labelled=bool(number % 2)))
            return
    cluster.server.put(ref, live_object)


def _someones(live_object: Document, *, labelled: bool) -> Document:
    """Another object of the name, which looks as ours but was not made by kvtier."""
    metadata = {name: live_object["metadata"][name] for name in ("name", "namespace")}
    if labelled:
        metadata["labels"] = live_object["metadata"].get("labels", {})
    content = {name: live_object[name] for name in live_object if name not in ("metadata", "status")}
    return {**content, "metadata": metadata}


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - JSON
    """Paths of everything in a document that is no map or list."""
    if isinstance(value, dict):
        for name in sorted(value):
            yield from _leaves(value[name], (*path, name))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _leaves(each, (*path, place))
    else:
        yield path


def content_leaves(each: Document) -> list[tuple[Any, ...]]:
    """Those that somebody may edit."""
    metadata = {name: each["metadata"].get(name, {}) for name in ("labels", "annotations", "ownerReferences")}
    rest = {
        name: value
        for name, value in each.items()
        if name not in ("apiVersion", "kind", "metadata", "status")
    }
    return [*_leaves({"metadata": metadata} | rest)]


def _edit(each: Document, path: tuple[Any, ...]) -> None:
    """Sets a leaf to another value of its type."""
    *parents, last = path
    place = _at(each, parents)
    before = place[last]
    place[last] = not before if isinstance(before, bool) else 7 if isinstance(before, int) else "theirs"


def _take_out(each: Document, path: tuple[Any, ...]) -> None:
    """Removes a leaf."""
    *parents, last = path
    del _at(each, parents)[last]


def _at(each: Any, path: Sequence[Any]) -> Any:  # noqa: ANN401 - JSON
    for step in path:
        each = each[step]
    return each
