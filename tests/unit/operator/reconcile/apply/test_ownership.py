"""Whose the object of a name is: one list for many, single looks where there are too many to list."""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from kvtier_common.backoff import Backoff
from kvtier_common.errors import KvtierError, TooLargeError
from kvtier_common.kubernetes.answers import ConflictError, ForbiddenError, NotFoundError, ServerError
from kvtier_common.kubernetes.client import MOST_BYTES, Api
from kvtier_operator.reconcile.api_server import Ref
from kvtier_operator.reconcile.apply.apply import OwnershipLookup
from kvtier_operator.reconcile.settings import OwnershipTimings

_OWNER = {
    "apiVersion": "kvtier.dev/v1alpha1",
    "kind": "KVCacheTier",
    "name": "x",
    "uid": "u",
    "controller": True,
}


class _Server(Api):
    """Answers with what it was given, and notes what it was asked."""

    def __init__(self, answers: Mapping[str, Any], *errors: KvtierError) -> None:
        self.answers = answers
        self.errors = [*errors]
        self.asked: list[str] = []

    async def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        accept: str = "",
        *,
        most_bytes: int = MOST_BYTES,
    ) -> bytes:
        del accept
        self.asked.append(path)
        if self.errors:
            raise self.errors.pop(0)
        named = (query or {}).get("fieldSelector", "")
        if path + named not in self.answers:
            raise NotFoundError(path + named)
        answer = orjson.dumps(self.answers[path + named])
        if len(answer) > most_bytes:
            raise TooLargeError(path + named)
        return answer


_SERVICES = "/api/v1/namespaces/default/services"


def _ref(name: str) -> Ref:
    return Ref("Service", "default", name)


@pytest.mark.parametrize("items", [[], None], ids=["empty", "null, as the server writes none"])
async def test_a_free_name(items: object) -> None:
    server = _Server({_SERVICES: {"metadata": {}, "items": items}})
    assert await OwnershipLookup(server, _AT_ONCE).owner(_ref("a")) is None


async def test_one_list_serves_all_who_ask_together() -> None:
    theirs = {"metadata": {"name": "theirs"}}
    ours = {"metadata": {"name": "ours", "ownerReferences": [_OWNER]}}
    server = _Server({_SERVICES: {"metadata": {}, "items": [theirs, ours]}})
    names = OwnershipLookup(server)
    found = await asyncio.gather(*(names.owner(_ref(name)) for name in ("theirs", "ours", "free")))
    assert found == ["", "u", None]
    assert server.asked == [_SERVICES]


async def test_an_own_object_that_lost_its_owner_and_its_label_is_no_one_elses() -> None:
    lost = {"metadata": {"name": "lost", "managedFields": [{"manager": "kvtier", "operation": "Apply"}]}}
    few = OwnershipLookup(_Server({_SERVICES: {"metadata": {}, "items": [lost]}}))
    page = {"metadata": {"continue": "more"}, "items": []}
    found = {"metadata": {}, "items": [lost]}
    many = OwnershipLookup(_Server({_SERVICES: page, f"{_SERVICES}metadata.name=lost": found}))
    assert [await each.owner(_ref("lost")) for each in (few, many)] == [None, None]


_STUFFED = {"metadata": {"name": "theirs", "annotations": {"x": "x" * (250 << 10)}}}


@pytest.mark.parametrize(
    "page",
    [{"metadata": {"continue": "more"}, "items": []}, {"metadata": {}, "items": [_STUFFED] * 90}],
    ids=["many", "large"],
)
async def test_names_are_looked_up_one_by_one_where_a_list_is_too_much(page: Mapping[str, Any]) -> None:
    found = {"metadata": {}, "items": [{"metadata": {"name": "theirs"}}]}
    answers = {f"{_SERVICES}metadata.name=theirs": found, f"{_SERVICES}metadata.name=free": {"items": None}}
    server = _Server({_SERVICES: page, **answers})
    names = OwnershipLookup(server)
    assert await names.owner(_ref("theirs")) == ""
    assert await names.owner(_ref("free")) is None


async def test_a_server_that_does_not_say_is_an_error_for_all() -> None:
    with pytest.raises(NotFoundError):
        await OwnershipLookup(_Server({})).owner(_ref("a"))


_AT_ONCE = OwnershipTimings(retry=Backoff(first_s=0, longest_s=0))


async def test_who_gets_no_answer_asks_again() -> None:
    server = _Server({_SERVICES: {"metadata": {}, "items": []}}, *(ConflictError("now") for _ in range(4)))
    assert await OwnershipLookup(server, _AT_ONCE).owner(_ref("a")) is None
    assert len(server.asked) == 5


@pytest.mark.parametrize(
    ("error", "times"),
    [(ConflictError("always"), 5), (ForbiddenError("no rights"), 1), (ServerError("in a minute", 60), 1)],
    ids=["momentary", "waits for somebody", "asks to come back later"],
)
async def test_what_does_not_change_is_the_answer(error: KvtierError, times: int) -> None:
    server = _Server({}, *[error] * 9)
    with pytest.raises(type(error)):
        await OwnershipLookup(server, _AT_ONCE).owner(_ref("a"))
    assert len(server.asked) == times
