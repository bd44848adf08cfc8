"""The store of live objects: what is news, and what is not."""

import random
from typing import Any

import pytest
from tests.cases.routes import condition, parent_status
from tests.unit.operator.reconcile.objects import UID, live_manifest, plan_objects

from kvtier_operator.reconcile.api_server import BY_NAME
from kvtier_operator.reconcile.apply.diff import Diff, diff
from kvtier_operator.reconcile.cache.live_object import LiveObject, ManifestStore
from kvtier_operator.reconcile.cache.live_objects import LiveObjectCache
from kvtier_operator.reconcile.facts.cached_plan import DesiredObject

_DEPLOYMENT = BY_NAME["Deployment"]


class _Told:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str, bool]] = []
        self.live_objects = LiveObjectCache(lambda *call: self.calls.append(call))

    def news(self) -> list[tuple[str, str, bool]]:
        calls, self.calls = self.calls, []
        return calls


def _engine() -> DesiredObject:
    return next(child for child in plan_objects()[1] if child.ref.kind == "Deployment")


def test_an_object_is_news_once() -> None:
    told, engine = _Told(), _engine()
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine))
    assert told.news() == [("default", "qwen3-32b", True)]
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine))
    told.live_objects.upsert(
        _DEPLOYMENT, live_manifest(engine, version=12)
    )  # the same content under another version
    assert not told.news()


def test_an_older_version_is_ignored() -> None:
    told, engine = _Told(), _engine()
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine, version=12))
    old = live_manifest(engine, version=11)
    old["spec"]["replicas"] = 9
    told.live_objects.upsert(_DEPLOYMENT, old)
    live_object = told.live_objects.get(engine.ref)
    assert live_object
    assert live_object.version == 12
    assert live_object.facts
    assert live_object.facts.desired_replicas == 1


@pytest.mark.parametrize("seen_before_the_answer", [False, True])
def test_someones_change_after_our_write_is_not_taken_for_ours(seen_before_the_answer: bool) -> None:
    told, engine = _Told(), _engine()
    ours, theirs = live_manifest(engine, version=11), live_manifest(engine, version=12)
    theirs["spec"]["replicas"] = 9
    if seen_before_the_answer:
        told.live_objects.upsert(_DEPLOYMENT, theirs)
    told.live_objects.take_answer(_DEPLOYMENT, ours, engine.digest)
    told.live_objects.upsert(_DEPLOYMENT, theirs)
    live_object = told.live_objects.get(engine.ref)
    assert live_object
    assert live_object.version == 12
    assert not live_object.synced_digest
    found = diff([engine], [live_object], told.live_objects.get, lambda _: True, UID)
    assert found.out_of_sync == (engine.with_uid(live_object.uid),)


def test_our_write_is_as_wanted_also_if_a_watch_shows_it_first() -> None:
    told, engine = _Told(), _engine()
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine, version=11))
    told.live_objects.take_answer(_DEPLOYMENT, live_manifest(engine, version=11), engine.digest)
    live_object = told.live_objects.get(engine.ref)
    assert live_object
    assert live_object.synced_digest == engine.digest


@pytest.mark.parametrize("listed", [False, True])
def test_an_object_that_went_before_its_writes_answer_came_does_not_come_back(listed: bool) -> None:
    told, engine = _Told(), _engine()
    if listed:
        told.live_objects.replace(_DEPLOYMENT, None, set(), version=12)
    else:
        told.live_objects.delete(_DEPLOYMENT, live_manifest(engine, version=12))
    told.live_objects.take_answer(_DEPLOYMENT, live_manifest(engine, version=11), engine.digest)
    assert told.live_objects.get(engine.ref) is None
    told.live_objects.take_answer(
        _DEPLOYMENT, live_manifest(engine, version=13, uid="made anew"), engine.digest
    )
    assert told.live_objects.get(engine.ref)


def test_what_was_written_since_is_not_gone() -> None:
    told, engine = _Told(), _engine()
    told.live_objects.take_answer(_DEPLOYMENT, live_manifest(engine, version=12), engine.digest)
    told.live_objects.delete(
        _DEPLOYMENT, live_manifest(engine, version=11)
    )  # its label was away for a moment
    assert told.live_objects.get(engine.ref)


def test_news_of_one_that_was_there_before_is_old() -> None:
    told, engine = _Told(), _engine()
    told.live_objects.take_answer(_DEPLOYMENT, live_manifest(engine, version=12, uid="new"), engine.digest)
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine, version=11, uid="old"))
    live_object = told.live_objects.get(engine.ref)
    assert live_object
    assert live_object.uid == "new"


def test_an_object_that_lost_its_owner_is_still_pruned() -> None:
    told, engine = _Told(), _engine()
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine))
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine, version=11, ownerReferences=[]))
    assert [live_object.ref for live_object in told.live_objects.of("default", UID)] == [engine.ref]


@pytest.mark.parametrize("owners", [[], [{"name": "other", "uid": "other", "controller": True}]])
def test_who_loses_an_object_is_told(owners: list[dict[str, object]]) -> None:
    told, engine = _Told(), _engine()
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine))
    told.news()
    for owner in owners:
        owner |= {"kind": "KVCacheTier", "apiVersion": "kvtier.dev/v1alpha1"}
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine, version=11, ownerReferences=owners))
    assert ("default", "qwen3-32b", True) in told.news()


def test_a_status_is_news_of_another_urgency() -> None:
    told, engine = _Told(), _engine()
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine))
    told.news()
    told.live_objects.upsert(
        _DEPLOYMENT, live_manifest(engine, version=11) | {"status": {"readyReplicas": 1}}
    )
    assert told.news() == [("default", "qwen3-32b", False)]


def test_what_a_gateway_says_of_a_route_is_news() -> None:
    told = _Told()
    gateway: dict[str, object] = {"spec.router": {"gateway": {"parentRef": {"name": "front"}}}}
    for kind in ("HTTPRoute", "InferencePool"):
        (wanted,) = (child for child in plan_objects(gateway)[1] if child.ref.kind == kind)
        told.live_objects.upsert(BY_NAME[kind], live_manifest(wanted))
        told.news()
        answered = {"status": {"parents": [parent_status(condition(), gateway="default/front")]}}
        told.live_objects.upsert(BY_NAME[kind], live_manifest(wanted, version=11) | answered)
        assert told.news() == [("default", "qwen3-32b", False)]
        told.live_objects.upsert(BY_NAME[kind], live_manifest(wanted, version=12) | answered)
        assert not told.news()


def test_only_the_object_that_was_known_goes() -> None:
    told, engine = _Told(), _engine()
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine, uid="new"))
    told.news()
    told.live_objects.delete(_DEPLOYMENT, live_manifest(engine, uid="old"))
    assert told.live_objects.get(engine.ref)
    told.live_objects.delete(_DEPLOYMENT, live_manifest(engine, uid="new"))
    assert told.news() == [("default", "qwen3-32b", True)]
    assert not [*told.live_objects.of("default", UID)]


def test_a_list_drops_what_is_not_in_it_of_its_kind_and_namespace() -> None:
    told = _Told()
    for each in plan_objects()[1]:
        told.live_objects.upsert(each.kind, live_manifest(each))
    count = len(told.live_objects)
    told.live_objects.replace(_DEPLOYMENT, "elsewhere", set(), version=10)
    told.live_objects.replace(_DEPLOYMENT, None, set(), version=9)  # they are newer
    assert len(told.live_objects) == count
    told.live_objects.replace(_DEPLOYMENT, None, {("default", "qwen3-32b-engine")}, version=10)
    assert len(told.live_objects) == count - 1
    told.live_objects.drop_kind(_DEPLOYMENT)
    assert len(told.live_objects) == count - 2


def _stuffed(engine: DesiredObject, number: int, version: int = 10) -> dict[str, Any]:
    """An object of somebody's with kvtier's label, which no compression makes shorter."""
    document = live_manifest(engine, version=version, name=f"stuffed-{number}", uid=f"stuffed-{number}")
    document["spec"]["stuffing"] = random.Random(number + version).randbytes(8 << 10).hex()  # noqa: S311
    return document


def test_what_is_kept_of_contents_has_a_bound_and_is_given_back() -> None:
    told, engine = _Told(), _engine()
    told.live_objects.manifests = manifests = ManifestStore(most_bytes=64 << 10)
    for version in (10, 11):
        for number in range(20):
            told.live_objects.upsert(_DEPLOYMENT, _stuffed(engine, number, version))
    assert 48 << 10 < manifests.kept_bytes <= 64 << 10
    told.live_objects.replace(_DEPLOYMENT, None, set(), version=12)
    assert manifests.kept_bytes == 0


def _found(told: _Told, desired: DesiredObject) -> LiveObject:
    live_object = told.live_objects.get(desired.ref)
    assert live_object
    return live_object


def test_an_object_without_room_is_written_once() -> None:
    told, engine = _Told(), _engine()
    told.live_objects.manifests = ManifestStore(most_bytes=100)
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine))
    live_object = _found(told, engine)
    assert diff([engine], [live_object], told.live_objects.get, lambda _: True, UID).out_of_sync
    told.live_objects.take_answer(_DEPLOYMENT, live_manifest(engine), engine.digest)  # it was as wanted
    assert diff([engine], [live_object], told.live_objects.get, lambda _: True, UID) == Diff()
    large = live_manifest(engine, version=11)
    large["spec"]["stuffing"] = "x" * (1 << 20)
    told.live_objects.manifests = ManifestStore()
    told.live_objects.upsert(_DEPLOYMENT, large)
    assert _found(told, engine).manifest is None
    assert told.live_objects.manifests.kept_bytes == 0


def test_a_settled_objects_room_is_given_back() -> None:
    told, engine = _Told(), _engine()
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine))
    kept_bytes = told.live_objects.manifests.kept_bytes
    told.live_objects.upsert(_DEPLOYMENT, live_manifest(engine, version=11))  # the same
    assert told.live_objects.manifests.kept_bytes == kept_bytes > 0
    _found(told, engine).mark_synced(engine.digest)
    assert told.live_objects.manifests.kept_bytes == 0


def test_an_owner_may_have_any_text_for_name_and_uid_and_little_is_kept() -> None:
    told, engine = _Told(), _engine()
    owner = {"kind": "x", "apiVersion": "x", "name": "n" * 1000, "uid": "u" * 1000, "controller": True}
    document = live_manifest(engine, ownerReferences=[owner])
    document["metadata"]["annotations"]["kvtier.dev/applied-hash"] = "h" * 1000
    told.live_objects.upsert(_DEPLOYMENT, document)
    live_object = _found(told, engine)
    assert {
        len(each) for each in (live_object.owner_name, live_object.owner_uid, live_object.applied_digest)
    } == {253}


def test_an_entry_of_managed_fields_without_a_manager_is_nobodys() -> None:
    """Whoever may change an object may leave it empty, and one such object must not end a watch."""
    told, engine = _Told(), _engine()
    document = live_manifest(engine)
    fields: dict[str, object] = {"f:spec": {"f:replicas": {}}}
    document["metadata"]["managedFields"] = [{"operation": "Apply", "fieldsV1": fields}, {}]
    document["metadata"]["ownerReferences"] = []
    told.live_objects.upsert(_DEPLOYMENT, document)
    live_object = told.live_objects.get(engine.ref)
    assert live_object
    assert (live_object.holds_replicas, live_object.orphaned) == (False, False)
