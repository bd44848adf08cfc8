"""What the operator may no longer see is not taken for what it last was."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import orjson
from tests.unit.operator.reconcile.model_cluster.api import ModelApi

from kvtier_common.kubernetes.answers import ForbiddenError, Place
from kvtier_common.kubernetes.reflector import Reflector
from kvtier_operator.reconcile.cache.surroundings import StorageClassCache
from kvtier_operator.reconcile.cache.watches import POLICY

_LIST = {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "one"}}]}
_CLASS = {"metadata": {"name": "fast"}, "provisioner": "somebody"}


class _Api(ModelApi):
    """Lists one object while it may be seen; a watch goes on until it may not."""

    def __init__(self) -> None:
        self.allowed = asyncio.Event()
        self.taken_away = asyncio.Event()

    async def get(self, path: str, query: Mapping[str, str] | None = None, *_: object, **__: object) -> bytes:
        del path, query
        if not self.allowed.is_set():
            raise ForbiddenError("no")
        return orjson.dumps(_LIST)

    async def watch(
        self, path: str, query: Mapping[str, str], *, most_bytes: int = 0
    ) -> AsyncGenerator[bytes, None]:
        del path, query, most_bytes
        await self.taken_away.wait()
        raise ForbiddenError("no more")
        yield b""


class _Sink:
    def __init__(self) -> None:
        self.lists = 0

    def upsert(self, document: dict[str, Any]) -> None:
        pass

    def delete(self, document: dict[str, Any]) -> None:
        pass

    def replace(self, places: set[Place], version: int) -> None:
        del places, version
        self.lists += 1


def test_a_watch_that_is_refused_is_in_step_again_only_after_a_new_list() -> None:
    async def run() -> None:
        api, sink = _Api(), _Sink()
        reflector = Reflector(api, "x", "/x", {}, sink, POLICY)  # type: ignore[arg-type]  # stands in for it
        task = asyncio.create_task(reflector.run())
        api.allowed.set()
        async with asyncio.timeout(10):
            await reflector.synced.wait()
            api.allowed.clear()
            api.taken_away.set()
            await reflector.refusal.wait()
            assert not reflector.synced.is_set()
            assert reflector.trouble == "no more"
            api.taken_away.clear()
            api.allowed.set()
            await reflector.synced.wait()
        assert not reflector.refusal.is_set()
        assert sink.lists == 2
        task.cancel()

    asyncio.run(run())


def names(classes: StorageClassCache) -> list[str] | None:
    return None if classes.all is None else [storage_class.name for storage_class in classes.all]


def test_storage_classes_that_can_no_longer_be_seen_are_not_known() -> None:
    changes: list[int] = []
    classes = StorageClassCache(lambda: changes.append(classes.version))
    classes.set_access_problem("the operator may not")
    assert not changes, "nothing was known before"
    classes.upsert(_CLASS)
    assert names(classes) is None, "there may be more"
    classes.replace({("", "fast")}, 1)
    assert names(classes) == ["fast"]
    classes.upsert(_CLASS)
    assert changes == [1, 2]
    classes.set_access_problem("the operator may no longer")
    assert (names(classes), changes) == (None, [1, 2, 3])


def test_storage_classes_come_and_go() -> None:
    classes = StorageClassCache(lambda: None)
    classes.replace(set(), 1)
    assert names(classes) == []
    classes.upsert(_CLASS)
    classes.upsert({"metadata": {"name": "slow"}})
    classes.delete({"metadata": {"name": "slow"}})
    assert names(classes) == ["fast"]
    before = classes.version
    classes.replace(set(), 2)
    assert (names(classes), classes.version) == ([], before + 1)
