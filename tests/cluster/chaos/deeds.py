"""What somebody does to an object of kvtier's: a field of kvtier's changed or removed, or all of it."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
from tests.cluster.chaos.snapshot import CHILDREN
from tests.cluster.harness.api.connection import Connection, collection

from kvtier_operator.planning.base.names import MANAGED_BY_LABEL

FieldPath = tuple[str | int, ...]
DEEDS: Final = ("delete", "take label", "take owner", "edit")
_COME_AND_GO: Final = ("PodDisruptionBudget", "HTTPRoute")
"""An object without its label that its resource no longer wants cannot be told from someone else's."""
_REFUSED: Final = (400, 404, 409, 422)


class Others:
    """Somebody in one namespace, who does the same for the same seed as long as the operator does.

    Attributes:
        done: What the API server took of it.
    """

    def __init__(self, connection: Connection, namespace: str, seed: int) -> None:
        self._connection = connection
        self._namespace = namespace
        self._random = random.Random(seed)  # noqa: S311 - not for secrets
        self.done = 0

    async def do_something(self) -> bool:
        """Does one thing to some object; tells whether that changed anything."""
        place = await self.pick()
        return place is not None and await self.do(self._random.choices(DEEDS, (3, 4, 4, 12))[0], *place)

    async def pick(self) -> tuple[str, str] | None:
        """Kind and name of an object of kvtier's; None where there is none of a kind."""
        kind = self._random.choice(CHILDREN)
        items = (await self._connection.request("GET", collection(kind, self._namespace)))["items"]
        owned = [item["metadata"]["name"] for item in items if "managedFields" in item["metadata"]]
        return (kind, self._random.choice(owned)) if owned else None

    async def do(self, deed: str, kind: str, name: str) -> bool:
        """Does one thing to one object; tells whether that changed anything.

        What validation or a conflict refuses was not done.
        """
        path = f"{collection(kind, self._namespace)}/{name}"
        try:
            if deed == "delete":
                await self._connection.request("DELETE", path)
                is_changed = True
            else:
                one = await self._connection.request("GET", path)
                before = _content(one)
                self._edit(deed, one)
                is_changed = _content(await self._connection.request("PUT", path, one)) != before
        except aiohttp.ClientResponseError as error:
            if error.status not in _REFUSED:
                raise
            return False
        self.done += 1
        return is_changed

    def _edit(self, deed: str, one: dict[str, Any]) -> None:
        metadata = one["metadata"]
        if deed == "take label" and one["kind"] not in _COME_AND_GO:
            metadata.get("labels", {}).pop(MANAGED_BY_LABEL, None)
        elif deed == "take owner":
            metadata.pop("ownerReferences", None)
        elif paths := [*own_fields(one)]:
            change(one, self._random.choice(paths), remove=self._random.random() < 0.3)


def own_fields(one: dict[str, Any]) -> Iterator[FieldPath]:
    """The fields that the server says are kvtier's."""
    for entry in one["metadata"].get("managedFields", ()):
        if (entry["manager"], entry["operation"]) == ("kvtier", "Apply"):
            yield from _leaves(one, entry["fieldsV1"])


def _leaves(value: Any, fields: dict[str, Any], path: FieldPath = ()) -> Iterator[FieldPath]:  # noqa: ANN401 - JSON
    for name, inner in fields.items():
        step = _step(value, name)
        if step is None:
            continue
        # an item with another key is another item, and whose it is
        keys = json.loads(name[2:]) if name.startswith("k:") else ()
        if inner:
            within = {each: rest for each, rest in inner.items() if each[2:] not in keys}
            yield from _leaves(value[step], within, (*path, step))
        else:
            yield (*path, step)


def _step(value: Any, name: str) -> str | int | None:  # noqa: ANN401 - JSON
    """A key or place for a part of a field's path (structured-merge-diff's fieldpath)."""
    if name.startswith("f:") and isinstance(value, dict):
        return name[2:] if name[2:] in value else None
    if name.startswith("k:") and isinstance(value, list):
        keys = json.loads(name[2:]).items()
        return next((place for place, each in enumerate(value) if keys <= each.items()), None)
    return None


def change(one: dict[str, Any], path: FieldPath, *, remove: bool) -> None:
    """Removes a field, or gives it another value of its type."""
    *parents, last = path
    place: Any = one
    for step in parents:
        place = place[step]
    value = place[last]
    if remove:
        del place[last]
    elif isinstance(value, bool):
        place[last] = not value
    elif isinstance(value, int):
        place[last] = value + 1
    elif isinstance(value, str):
        place[last] = "theirs"
    elif isinstance(value, dict):
        value["theirs"] = "theirs"
    elif isinstance(value, list) and value:
        value.append(value[0] | {"name": "theirs"} if isinstance(value[0], dict) else "theirs")


async def try_change(
    connection: Connection, kind: str, one: dict[str, Any], path: FieldPath, *, remove: bool
) -> dict[str, Any] | None:
    """The object as a change to one field would leave it; None where that is refused, or changes nothing."""
    changed = copy.deepcopy(one)
    change(changed, path, remove=remove)
    metadata = one["metadata"]
    where = f"{collection(kind, metadata['namespace'])}/{metadata['name']}?dryRun=All"
    try:
        after = await connection.request("PUT", where, changed)
    except aiohttp.ClientResponseError as error:
        if error.status not in _REFUSED:
            raise
        return None
    return None if _content(after) == _content(one) else after


def _content(one: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: one["metadata"].get(name) for name in ("labels", "annotations", "ownerReferences")}
    # items of a list do not say their kind
    rest = {name: value for name, value in one.items() if name not in ("apiVersion", "kind", "status")}
    found: dict[str, Any] = _without_empty(rest | {"metadata": metadata})
    return found


def _without_empty(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Without fields that say as much as none: a list or mapping of nothing."""
    if isinstance(value, dict):
        return {name: _without_empty(each) for name, each in value.items() if each not in ([], {}, None)}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


async def objects(connection: Connection, namespace: str) -> list[tuple[str, dict[str, Any]]]:
    """All objects of a namespace that kvtier made, each with its kind."""
    listed = {kind: await connection.request("GET", collection(kind, namespace)) for kind in CHILDREN}
    return [(kind, item) for kind, found in listed.items() for item in found["items"] if [*own_fields(item)]]
