"""A round that comes to no end is told once, by whichever way is open."""

from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.operator.reconcile.objects import UID, stored_resource

from kvtier_common.errors import KvtierError, UnreachableError
from kvtier_common.kubernetes.answers import ForbiddenError, NotFoundError
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.cache.resources import Key, ResourceCache, key_of
from kvtier_operator.reconcile.facts.cached_plan import DesiredObject
from kvtier_operator.reconcile.loop.clock import Clock
from kvtier_operator.reconcile.loop.reconciler import FailureReporter

if TYPE_CHECKING:
    from collections.abc import Callable

ACCEPTED = {"type": "Accepted", "status": "True", "reason": "Accepted"}
WHY = ForbiddenError("cannot get resource")


class _Writer(Writer):
    """Takes what it is to write, or refuses it."""

    def __init__(self, refuses: KvtierError | None) -> None:
        self.refuses = refuses
        self.meanwhile: Callable[[], None] = lambda: None
        self.statuses: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []

    async def apply(self, wanted: DesiredObject) -> dict[str, Any]:
        raise AssertionError(f"{wanted.ref}: nothing is applied")

    async def status(self, namespace: str, name: str, uid: str, status: dict[str, Any]) -> dict[str, Any]:
        assert (namespace, name, uid) == ("default", "qwen3-32b", UID)
        if self.refuses:
            raise self.refuses
        self.statuses.append(status)
        self.meanwhile()
        return stored_resource(version=len(self.statuses) + 1) | {"status": status}

    async def event(self, namespace: str, event: dict[str, Any]) -> None:
        assert namespace == "default"
        self.events.append(event)


def _told(refuses: KvtierError | None = None) -> tuple[FailureReporter, _Writer, ResourceCache, Key]:
    resources, writer = ResourceCache(lambda _: None), _Writer(refuses)
    resources.upsert(stored_resource() | {"status": {"observedGeneration": 1, "conditions": [ACCEPTED]}})
    key = key_of(stored_resource())
    return FailureReporter(writer, resources, Clock()), writer, resources, key


async def test_the_status_says_it_once_and_keeps_the_rest() -> None:
    reporter, writer, _, key = _told()
    for failures in (1, 2, 3):
        await reporter.report(key, WHY, failures)
    [status] = writer.statuses
    assert status["observedGeneration"] == 1
    accepted, ready = status["conditions"]
    assert accepted == ACCEPTED
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "Unknown", "RoundFailed")
    assert "cannot get resource" in ready["message"]
    [event] = writer.events
    assert event["involvedObject"]["uid"] == UID
    assert "cannot get resource" in event["message"]


async def test_an_event_says_it_where_the_status_is_not_taken() -> None:
    reporter, writer, _, key = _told(ForbiddenError("no status"))
    for failures in (1, 2, 3):
        await reporter.report(key, WHY, failures)
    assert not writer.statuses
    assert len(writer.events) == 1


async def test_another_cause_is_told_too() -> None:
    reporter, writer, _, key = _told()
    await reporter.report(key, WHY, 1)
    await reporter.report(key, ValueError("what"), 2)
    assert "a bug in kvtier, ValueError: what" in writer.statuses[-1]["conditions"][-1]["message"]
    assert len(writer.events) == 2


@pytest.mark.parametrize(("failures", "told"), [(1, 0), (5, 0), (6, 1)])
async def test_what_passes_is_told_when_it_does_not(failures: int, told: int) -> None:
    reporter, writer, _, key = _told()
    await reporter.report(key, UnreachableError("no answer"), failures)
    assert len(writer.statuses) == told


async def test_what_passes_is_told_once_however_it_words_itself() -> None:
    reporter, writer, _, key = _told()
    for port in range(7):
        await reporter.report(key, UnreachableError(f"from port {port}"), port + 6)
    assert (len(writer.statuses), len(writer.events)) == (1, 1)


async def test_a_resource_that_went_does_not_come_back_by_the_answer() -> None:
    reporter, writer, resources, key = _told()
    writer.meanwhile = lambda: resources.delete(key, UID)
    await reporter.report(key, WHY, 1)
    assert resources.get(key) is None


async def test_a_resource_that_is_gone_is_let_go() -> None:
    reporter, _, resources, key = _told(NotFoundError("gone"))
    await reporter.report(key, WHY, 1)
    assert resources.get(key) is None
    await reporter.report(key, WHY, 2)
