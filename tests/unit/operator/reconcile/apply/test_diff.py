"""What there is to do, for every way in which live and wanted objects can differ."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.unit.operator.reconcile.objects import UID, children_of, live, planned

from kvtier_operator.reconcile.api_server.kinds import BY_NAME
from kvtier_operator.reconcile.apply.desired import APPLIED_HASH, Wanted
from kvtier_operator.reconcile.apply.diff import Diff, diff, is_settled
from kvtier_operator.reconcile.cache.live_objects import Children

Edit = Callable[[dict[str, Any]], object]


def _diff(wanted: Iterable[Wanted], children: Children, unserved: tuple[str, ...] = ()) -> Diff:
    return diff(
        tuple(wanted), [*children.of(UID)], children.get, lambda kind: kind not in unserved, owner_uid=UID
    )


@pytest.fixture(name="wanted")
def _wanted() -> tuple[Wanted, ...]:
    return planned({"spec.replicas": 2})[1]


def _one(wanted: tuple[Wanted, ...], kind: str, name: str) -> Wanted:
    return next(each for each in wanted if each.ref.kind == kind and each.ref.name.endswith(name))


def test_nothing_there(wanted: tuple[Wanted, ...]) -> None:
    assert _diff(wanted, children_of()) == Diff(missing=wanted)


def test_all_there_as_wanted(wanted: tuple[Wanted, ...]) -> None:
    children = children_of(*wanted)
    assert not is_settled(wanted, children.of(UID), lambda _: True)  # nobody looked yet
    assert _diff(wanted, children) == Diff()
    assert is_settled(wanted, children.of(UID), lambda _: True)
    assert all(child.content is None for child in children.of(UID))  # nor is it kept


def test_a_status_does_not_unsettle(wanted: tuple[Wanted, ...]) -> None:
    children = children_of(*wanted)
    _diff(wanted, children)
    engine = _one(wanted, "Deployment", "-engine")
    changed = live(engine, version=11) | {"status": {"replicas": 1}}
    changed["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "1"
    children.seen(engine.kind, changed)
    assert is_settled(wanted, children.of(UID), lambda _: True)


def _label_gone(one: dict[str, Any]) -> object:
    return one["metadata"]["labels"].pop("app.kubernetes.io/part-of")


def _other_image(one: dict[str, Any]) -> object:
    return one["spec"]["template"]["spec"]["containers"][0].update(image="other")


def _other_hash(one: dict[str, Any]) -> object:
    return one["metadata"]["annotations"].update({APPLIED_HASH: "of an older spec"})


def _container_gone(one: dict[str, Any]) -> object:
    return one["spec"]["template"]["spec"]["containers"].clear()


@pytest.mark.parametrize("edit", [_label_gone, _other_image, _other_hash, _container_gone])
def test_an_edit_is_seen(wanted: tuple[Wanted, ...], edit: Edit) -> None:
    children = children_of(*wanted)
    _diff(wanted, children)
    engine = _one(wanted, "Deployment", "-engine")
    edited = live(engine, version=11)
    edit(edited)
    children.seen(engine.kind, edited)
    assert not is_settled(wanted, children.of(UID), lambda _: True)
    assert _diff(wanted, children) == Diff(differing=(engine.over(f"uid of {engine.ref}"),))


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
def test_what_others_add_is_theirs(wanted: tuple[Wanted, ...], edit: Edit) -> None:
    children = children_of(*wanted)
    engine = _one(wanted, "Deployment", "-engine")
    edited = live(engine, version=11)
    edit(edited)
    children.seen(engine.kind, edited)
    assert _diff(wanted, children) == Diff()


def test_what_is_no_longer_wanted_is_surplus_but_not_twice(wanted: tuple[Wanted, ...]) -> None:
    children = children_of(*wanted)
    fewer = planned({"spec.replicas": 1})[1]
    found = _diff(fewer, children)
    assert [child.ref.kind for child in found.surplus] == ["PodDisruptionBudget"]
    budget = _one(wanted, "PodDisruptionBudget", "-engine")
    children.seen(budget.kind, live(budget, version=11, deletionTimestamp="now"))
    assert not _diff(fewer, children).surplus


@pytest.mark.parametrize("owner", [None, "uid of an older resource"])
def test_an_object_of_someone_else_is_foreign(wanted: tuple[Wanted, ...], owner: str | None) -> None:
    children = children_of()
    picker = _one(wanted, "ConfigMap", "-picker")
    theirs = live(picker)
    theirs["metadata"]["managedFields"][0]["manager"] = "kubectl"
    if owner:
        theirs["metadata"]["ownerReferences"][0]["uid"] = owner
    else:
        del theirs["metadata"]["ownerReferences"]
    children.seen(picker.kind, theirs)
    found = _diff(wanted, children)
    assert found.foreign == (picker,)
    assert picker not in found.missing


@pytest.mark.parametrize(
    "left", [[], [{"uid": UID, "name": "qwen3-32b"}], [{"uid": UID, "name": "x", "controller": True}]]
)
def test_an_own_object_that_nobody_controls_any_more_is_repaired(
    wanted: tuple[Wanted, ...], left: list[dict[str, Any]]
) -> None:
    children = children_of(*wanted)
    picker = _one(wanted, "ConfigMap", "-picker")
    children.seen(picker.kind, live(picker, version=11, ownerReferences=left))
    assert not is_settled(wanted, children.of(UID), lambda _: True)
    assert [each.ref for each in _diff(wanted, children).differing] == [picker.ref]


def test_kinds_that_are_not_served_wait(wanted: tuple[Wanted, ...]) -> None:
    children = children_of(*(each for each in wanted if each.ref.kind != "InferencePool"))
    found = _diff(wanted, children, unserved=("InferencePool",))
    assert [each.ref.kind for each in found.unserved] == ["InferencePool"]
    assert not found.missing
    assert is_settled(wanted, children.of(UID), lambda kind: kind != "InferencePool")
    assert not is_settled(wanted, children.of(UID), lambda _: True)


def test_an_object_that_is_going_is_waited_for(wanted: tuple[Wanted, ...]) -> None:
    children = children_of(*wanted)
    engine = _one(wanted, "Deployment", "-engine")
    going = live(engine, version=11, deletionTimestamp="now")
    _other_image(going)
    children.seen(engine.kind, going)
    assert _diff(wanted, children) == Diff()
    children.gone(BY_NAME["Deployment"], going)
    assert _diff(wanted, children) == Diff(missing=(engine,))
