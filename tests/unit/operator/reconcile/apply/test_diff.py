"""What there is to do, for every way in which live and wanted objects can differ."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.operator.reconcile.objects import UID, live_manifest, live_objects_of, plan_objects

from kvtier_operator.reconcile.api_server import BY_NAME
from kvtier_operator.reconcile.apply.diff import Diff, diff, is_in_sync
from kvtier_operator.reconcile.cache.live_objects import LiveObjectCache
from kvtier_operator.reconcile.facts.cached_plan import APPLIED_HASH, DesiredObject

Edit = Callable[[dict[str, Any]], object]


def _diff(
    wanted: Iterable[DesiredObject], live_objects: LiveObjectCache, unserved: tuple[str, ...] = ()
) -> Diff:
    found = diff(
        tuple(wanted),
        [*live_objects.of("default", UID)],
        live_objects.get,
        lambda kind: kind not in unserved,
        owner_uid=UID,
    )
    for live_object, digest in found.found_in_sync:
        live_object.mark_synced(digest)
    return replace(found, found_in_sync=())


@pytest.fixture(name="wanted")
def _wanted() -> tuple[DesiredObject, ...]:
    return plan_objects({"spec.replicas": 2})[1]


def _one(wanted: tuple[DesiredObject, ...], kind: str, name: str) -> DesiredObject:
    return next(child for child in wanted if child.ref.kind == kind and child.ref.name.endswith(name))


def test_a_comparison_changes_no_live_object(wanted: tuple[DesiredObject, ...]) -> None:
    live_objects = live_objects_of(*wanted)
    first, second = (
        diff(wanted, [*live_objects.of("default", UID)], live_objects.get, lambda _: True, UID)
        for _ in range(2)
    )
    assert first == second
    assert [digest for _, digest in first.found_in_sync] == [child.digest for child in wanted]
    assert all(each.manifest is not None for each in live_objects.of("default", UID))


def test_nothing_there(wanted: tuple[DesiredObject, ...]) -> None:
    assert _diff(wanted, live_objects_of()) == Diff(missing=wanted)


def test_all_there_as_wanted(wanted: tuple[DesiredObject, ...]) -> None:
    live_objects = live_objects_of(*wanted)
    assert not is_in_sync(wanted, live_objects.of("default", UID), lambda _: True)  # nobody looked yet
    assert _diff(wanted, live_objects) == Diff()
    assert is_in_sync(wanted, live_objects.of("default", UID), lambda _: True)
    assert all(
        live_object.manifest is None for live_object in live_objects.of("default", UID)
    )  # nor is it kept


def test_a_status_does_not_unsettle(wanted: tuple[DesiredObject, ...]) -> None:
    live_objects = live_objects_of(*wanted)
    _diff(wanted, live_objects)
    engine = _one(wanted, "Deployment", "-engine")
    changed = live_manifest(engine, version=11) | {"status": {"replicas": 1}}
    changed["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "1"
    live_objects.upsert(engine.kind, changed)
    assert is_in_sync(wanted, live_objects.of("default", UID), lambda _: True)


def _label_gone(one: dict[str, Any]) -> object:
    return one["metadata"]["labels"].pop("app.kubernetes.io/part-of")


def _other_image(one: dict[str, Any]) -> object:
    return one["spec"]["template"]["spec"]["containers"][0].update(image="other")


def _other_hash(one: dict[str, Any]) -> object:
    return one["metadata"]["annotations"].update({APPLIED_HASH: "of an older spec"})


def _container_gone(one: dict[str, Any]) -> object:
    return one["spec"]["template"]["spec"]["containers"].clear()


@pytest.mark.parametrize("edit", [_label_gone, _other_image, _other_hash, _container_gone])
def test_an_edit_is_seen(wanted: tuple[DesiredObject, ...], edit: Edit) -> None:
    live_objects = live_objects_of(*wanted)
    _diff(wanted, live_objects)
    engine = _one(wanted, "Deployment", "-engine")
    edited = live_manifest(engine, version=11)
    edit(edited)
    live_objects.upsert(engine.kind, edited)
    assert not is_in_sync(wanted, live_objects.of("default", UID), lambda _: True)
    assert _diff(wanted, live_objects) == Diff(out_of_sync=(engine.with_uid(f"uid of {engine.ref}"),))


def _defaulted(one: dict[str, Any]) -> object:
    return one["spec"]["template"]["spec"].update(dnsPolicy="ClusterFirst", schedulerName="default-scheduler")


def _injected(one: dict[str, Any]) -> object:
    return one["spec"]["template"]["spec"]["containers"].append({"name": "mesh", "image": "mesh"})


def _quantity(one: dict[str, Any]) -> object:
    [shm, *_] = one["spec"]["template"]["spec"]["volumes"]
    return shm["emptyDir"].update(sizeLimit=str(1 << 30))


def _annotated(one: dict[str, Any]) -> object:
    return one["metadata"]["annotations"].update({"someone/else": "was here"})


@pytest.mark.parametrize("edit", [_defaulted, _injected, _quantity, _annotated])
def test_what_others_add_is_theirs(wanted: tuple[DesiredObject, ...], edit: Edit) -> None:
    live_objects = live_objects_of(*wanted)
    engine = _one(wanted, "Deployment", "-engine")
    edited = live_manifest(engine, version=11)
    edit(edited)
    live_objects.upsert(engine.kind, edited)
    assert _diff(wanted, live_objects) == Diff()


def test_what_is_no_longer_wanted_is_surplus_but_not_twice(wanted: tuple[DesiredObject, ...]) -> None:
    live_objects = live_objects_of(*wanted)
    fewer = plan_objects({"spec.replicas": 1})[1]
    found = _diff(fewer, live_objects)
    assert [live_object.ref.kind for live_object in found.to_prune] == ["PodDisruptionBudget"]
    budget = _one(wanted, "PodDisruptionBudget", "-engine")
    live_objects.upsert(budget.kind, live_manifest(budget, version=11, deletionTimestamp="now"))
    assert not _diff(fewer, live_objects).to_prune


@pytest.mark.parametrize("owner", [None, "uid of an older resource"])
def test_an_object_of_someone_else_is_foreign(wanted: tuple[DesiredObject, ...], owner: str | None) -> None:
    live_objects = live_objects_of()
    picker = _one(wanted, "ConfigMap", "-picker")
    theirs = live_manifest(picker)
    theirs["metadata"]["managedFields"][0]["manager"] = "kubectl"
    if owner:
        theirs["metadata"]["ownerReferences"][0]["uid"] = owner
    else:
        del theirs["metadata"]["ownerReferences"]
    live_objects.upsert(picker.kind, theirs)
    found = _diff(wanted, live_objects)
    assert found.owned_by_others == (picker,)
    assert picker not in found.missing


@pytest.mark.parametrize(
    "left", [[], [{"uid": UID, "name": "qwen3-32b"}], [{"uid": UID, "name": "x", "controller": True}]]
)
def test_an_own_object_that_nobody_controls_any_more_is_repaired(
    wanted: tuple[DesiredObject, ...], left: list[dict[str, Any]]
) -> None:
    live_objects = live_objects_of(*wanted)
    picker = _one(wanted, "ConfigMap", "-picker")
    live_objects.upsert(picker.kind, live_manifest(picker, version=11, ownerReferences=left))
    assert not is_in_sync(wanted, live_objects.of("default", UID), lambda _: True)
    assert [child.ref for child in _diff(wanted, live_objects).out_of_sync] == [picker.ref]


def test_kinds_that_are_not_served_wait(wanted: tuple[DesiredObject, ...]) -> None:
    live_objects = live_objects_of(*(child for child in wanted if child.ref.kind != "InferencePool"))
    found = _diff(wanted, live_objects, unserved=("InferencePool",))
    assert not found.missing
    assert is_in_sync(wanted, live_objects.of("default", UID), lambda kind: kind != "InferencePool")
    assert not is_in_sync(wanted, live_objects.of("default", UID), lambda _: True)


def test_an_object_that_is_going_is_waited_for(wanted: tuple[DesiredObject, ...]) -> None:
    live_objects = live_objects_of(*wanted)
    engine = _one(wanted, "Deployment", "-engine")
    going = live_manifest(engine, version=11, deletionTimestamp="now")
    _other_image(going)
    live_objects.upsert(engine.kind, going)
    assert _diff(wanted, live_objects) == Diff()
    live_objects.delete(BY_NAME["Deployment"], going)
    assert _diff(wanted, live_objects) == Diff(missing=(engine,))
