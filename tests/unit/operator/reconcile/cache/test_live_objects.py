"""The store of live objects: what is news, and what is not."""

import random
from typing import Any

import pytest
from tests.cases.routes import condition, parent_status
from tests.unit.operator.reconcile.objects import UID, live, planned

from kvtier_operator.reconcile.api_server.kinds import BY_NAME
from kvtier_operator.reconcile.apply.desired import Wanted
from kvtier_operator.reconcile.apply.diff import Diff, diff
from kvtier_operator.reconcile.cache.live_objects import Children
from kvtier_operator.reconcile.cache.manifests import ContentRoom

_DEPLOYMENT = BY_NAME["Deployment"]


class _Told:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str, bool]] = []
        self.children = Children(lambda *call: self.calls.append(call))

    def news(self) -> list[tuple[str, str, bool]]:
        calls, self.calls = self.calls, []
        return calls


def _engine() -> Wanted:
    return next(each for each in planned()[1] if each.ref.kind == "Deployment")


def test_an_object_is_news_once() -> None:
    told, engine = _Told(), _engine()
    told.children.seen(_DEPLOYMENT, live(engine))
    assert told.news() == [("default", "qwen3-32b", True)]
    told.children.seen(_DEPLOYMENT, live(engine))
    told.children.seen(_DEPLOYMENT, live(engine, version=12))  # the same content under another version
    assert not told.news()


def test_an_older_version_is_ignored() -> None:
    told, engine = _Told(), _engine()
    told.children.seen(_DEPLOYMENT, live(engine, version=12))
    old = live(engine, version=11)
    old["spec"]["replicas"] = 9
    told.children.seen(_DEPLOYMENT, old)
    child = told.children.get(engine.ref)
    assert child
    assert child.version == 12
    assert child.facts
    assert child.facts.wanted == 1


@pytest.mark.parametrize("seen_before_the_answer", [False, True])
def test_someones_change_after_our_write_is_not_taken_for_ours(seen_before_the_answer: bool) -> None:
    told, engine = _Told(), _engine()
    ours, theirs = live(engine, version=11), live(engine, version=12)
    theirs["spec"]["replicas"] = 9
    if seen_before_the_answer:
        told.children.seen(_DEPLOYMENT, theirs)
    told.children.written(_DEPLOYMENT, ours, engine.digest)
    told.children.seen(_DEPLOYMENT, theirs)
    child = told.children.get(engine.ref)
    assert child
    assert child.version == 12
    assert not child.matched
    found = diff([engine], [child], told.children.get, lambda _: True, UID)
    assert found.differing == (engine.over(child.uid),)


def test_our_write_is_as_wanted_also_if_a_watch_shows_it_first() -> None:
    told, engine = _Told(), _engine()
    told.children.seen(_DEPLOYMENT, live(engine, version=11))
    told.children.written(_DEPLOYMENT, live(engine, version=11), engine.digest)
    child = told.children.get(engine.ref)
    assert child
    assert child.matched == engine.digest


@pytest.mark.parametrize("listed", [False, True])
def test_an_object_that_went_before_its_writes_answer_came_does_not_come_back(listed: bool) -> None:
    told, engine = _Told(), _engine()
    if listed:
        told.children.only(_DEPLOYMENT, None, set(), version=12)
    else:
        told.children.gone(_DEPLOYMENT, live(engine, version=12))
    told.children.written(_DEPLOYMENT, live(engine, version=11), engine.digest)
    assert told.children.get(engine.ref) is None
    told.children.written(_DEPLOYMENT, live(engine, version=13, uid="made anew"), engine.digest)
    assert told.children.get(engine.ref)


def test_what_was_written_since_is_not_gone() -> None:
    told, engine = _Told(), _engine()
    told.children.written(_DEPLOYMENT, live(engine, version=12), engine.digest)
    told.children.gone(_DEPLOYMENT, live(engine, version=11))  # its label was away for a moment
    assert told.children.get(engine.ref)


def test_news_of_one_that_was_there_before_is_old() -> None:
    told, engine = _Told(), _engine()
    told.children.written(_DEPLOYMENT, live(engine, version=12, uid="new"), engine.digest)
    told.children.seen(_DEPLOYMENT, live(engine, version=11, uid="old"))
    child = told.children.get(engine.ref)
    assert child
    assert child.uid == "new"


def test_an_object_that_lost_its_owner_is_still_pruned() -> None:
    told, engine = _Told(), _engine()
    told.children.seen(_DEPLOYMENT, live(engine))
    told.children.seen(_DEPLOYMENT, live(engine, version=11, ownerReferences=[]))
    assert [child.ref for child in told.children.of(UID)] == [engine.ref]


@pytest.mark.parametrize("owners", [[], [{"name": "other", "uid": "other", "controller": True}]])
def test_who_loses_an_object_is_told(owners: list[dict[str, object]]) -> None:
    told, engine = _Told(), _engine()
    told.children.seen(_DEPLOYMENT, live(engine))
    told.news()
    for owner in owners:
        owner |= {"kind": "KVCacheTier", "apiVersion": "kvtier.dev/v1alpha1"}
    told.children.seen(_DEPLOYMENT, live(engine, version=11, ownerReferences=owners))
    assert ("default", "qwen3-32b", True) in told.news()


def test_a_status_is_news_of_another_urgency() -> None:
    told, engine = _Told(), _engine()
    told.children.seen(_DEPLOYMENT, live(engine))
    told.news()
    told.children.seen(_DEPLOYMENT, live(engine, version=11) | {"status": {"readyReplicas": 1}})
    assert told.news() == [("default", "qwen3-32b", False)]


def test_what_a_gateway_says_of_a_route_is_news() -> None:
    told = _Told()
    gateway: dict[str, object] = {"spec.router": {"gateway": {"parentRef": {"name": "front"}}}}
    for kind in ("HTTPRoute", "InferencePool"):
        (wanted,) = (each for each in planned(gateway)[1] if each.ref.kind == kind)
        told.children.seen(BY_NAME[kind], live(wanted))
        told.news()
        answered = {"status": {"parents": [parent_status(condition(), gateway="default/front")]}}
        told.children.seen(BY_NAME[kind], live(wanted, version=11) | answered)
        assert told.news() == [("default", "qwen3-32b", False)]
        told.children.seen(BY_NAME[kind], live(wanted, version=12) | answered)
        assert not told.news()


def test_only_the_object_that_was_known_goes() -> None:
    told, engine = _Told(), _engine()
    told.children.seen(_DEPLOYMENT, live(engine, uid="new"))
    told.news()
    told.children.gone(_DEPLOYMENT, live(engine, uid="old"))
    assert told.children.get(engine.ref)
    told.children.gone(_DEPLOYMENT, live(engine, uid="new"))
    assert told.news() == [("default", "qwen3-32b", True)]
    assert not [*told.children.of(UID)]


def test_a_list_drops_what_is_not_in_it_of_its_kind_and_namespace() -> None:
    told = _Told()
    for each in planned()[1]:
        told.children.seen(each.kind, live(each))
    count = len(told.children)
    told.children.only(_DEPLOYMENT, "elsewhere", set(), version=10)
    told.children.only(_DEPLOYMENT, None, set(), version=9)  # they are newer
    assert len(told.children) == count
    told.children.only(_DEPLOYMENT, None, {("default", "qwen3-32b-engine")}, version=10)
    assert len(told.children) == count - 1
    told.children.unserved(_DEPLOYMENT)
    assert len(told.children) == count - 2


def _stuffed(engine: Wanted, number: int, version: int = 10) -> dict[str, Any]:
    """An object of somebody's with kvtier's label, which no compression makes shorter."""
    document = live(engine, version=version, name=f"stuffed-{number}", uid=f"stuffed-{number}")
    document["spec"]["stuffing"] = random.Random(number + version).randbytes(8 << 10).hex()  # noqa: S311
    return document


def test_what_is_kept_of_contents_has_a_bound_and_is_given_back() -> None:
    told, engine = _Told(), _engine()
    told.children.room = room = ContentRoom(most_bytes=64 << 10)
    for version in (10, 11):
        for number in range(20):
            told.children.seen(_DEPLOYMENT, _stuffed(engine, number, version))
    assert 48 << 10 < room.kept_bytes <= 64 << 10
    told.children.only(_DEPLOYMENT, None, set(), version=12)
    assert room.kept_bytes == 0


def test_an_object_without_room_is_written_once() -> None:
    told, engine = _Told(), _engine()
    told.children.room = ContentRoom(most_bytes=100)
    child = told.children.seen(_DEPLOYMENT, live(engine))
    assert diff([engine], [child], told.children.get, lambda _: True, UID).differing
    told.children.written(_DEPLOYMENT, live(engine), engine.digest)  # it was as wanted
    assert diff([engine], [child], told.children.get, lambda _: True, UID) == Diff()
    large = live(engine, version=11)
    large["spec"]["stuffing"] = "x" * (1 << 20)
    told.children.room = ContentRoom()
    assert told.children.seen(_DEPLOYMENT, large).content is None
    assert told.children.room.kept_bytes == 0


def test_a_settled_objects_room_is_given_back() -> None:
    told, engine = _Told(), _engine()
    child = told.children.seen(_DEPLOYMENT, live(engine))
    kept_bytes = told.children.room.kept_bytes
    child = told.children.seen(_DEPLOYMENT, live(engine, version=11))  # the same
    assert told.children.room.kept_bytes == kept_bytes > 0
    child.settle(engine.digest)
    assert told.children.room.kept_bytes == 0


def test_an_owner_may_have_any_text_for_name_and_uid_and_little_is_kept() -> None:
    told, engine = _Told(), _engine()
    owner = {"kind": "x", "apiVersion": "x", "name": "n" * 1000, "uid": "u" * 1000, "controller": True}
    document = live(engine, ownerReferences=[owner])
    document["metadata"]["annotations"]["kvtier.dev/applied-hash"] = "h" * 1000
    child = told.children.seen(_DEPLOYMENT, document)
    assert {len(each) for each in (child.owner_name, child.owner_uid, child.applied)} == {253}
