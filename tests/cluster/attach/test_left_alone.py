"""Pods that the policy leaves as they are, and plans that cannot be followed."""

from typing import Any, Final

import pytest
from tests.cluster.attach.place import Place, attached_to, without_token
from tests.cluster.attach.shapes import CONTAINER, LABELS, memory, pod, tier
from tests.shared.waiting import eventually

from kvtier_connector.payload import ATTACH_VARIABLE, INIT_NAME, PAYLOAD_PATH, VOLUME_NAME
from kvtier_operator.planning.base.names import ATTACHED

Document = dict[str, Any]
_SECRET: Final = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
_OTHERS: Final = {"name": VOLUME_NAME, "emptyDir": {}}
_MOUNT: Final = {"name": "theirs", "mountPath": PAYLOAD_PATH}
_OLD: Final = pod()
LEFT_ALONE: Final[dict[str, Document]] = {
    "other role": pod(labels=LABELS | {"llm-d.ai/role": "decode"}),
    "one label of two": pod(labels={"app.kubernetes.io/name": "chat"}),
    "no labels": pod(labels={}),
    "other container": pod(name="server"),
    "attached": {**_OLD, "metadata": {**_OLD["metadata"], "annotations": {ATTACHED: "other"}}},
    "queued": pod(labels=LABELS | {"kueue.x-k8s.io/queue-name": "gpus"}),
    "gated": pod(spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}),
    "search path of a Secret": pod(env=[{"name": "PYTHONPATH", **_SECRET}]),
    "plug-ins of a Secret": pod(env=[{"name": "VLLM_PLUGINS", **_SECRET}]),
    "settings of its own": pod(env=[{"name": ATTACH_VARIABLE, "value": "{}"}]),
    "memory of the whole pod": pod(spec={"resources": {"limits": {"memory": "64Gi", "cpu": "4"}}}),
    "volume of that name": pod(spec={"volumes": [_OTHERS]}),
    "container of that name": pod(spec={"initContainers": [pod(name=INIT_NAME)["spec"]["containers"][0]]}),
    "folder taken": pod(volumeMounts=[_MOUNT], spec={"volumes": [{"name": "theirs", "emptyDir": {}}]}),
}


@pytest.mark.parametrize("what", LEFT_ALONE)
def test_what_is_not_understood_is_left_alone(published: Place, untouched: Place, what: str) -> None:
    made, as_written = (place.create(LEFT_ALONE[what], dry_run=True) for place in (published, untouched))
    assert without_token(made) == without_token(as_written)
    assert made["metadata"].get("annotations") == as_written["metadata"].get("annotations")


def test_a_namespace_that_did_not_opt_in_keeps_its_pods(untouched: Place) -> None:
    assert not attached_to(untouched.create(pod(), dry_run=True))


BROKEN: Final[dict[str, Document]] = {
    "no number": {"memory": "much"},
    "beyond 64 bits": {"memory": "100E"},
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_plan_that_cannot_be_followed_changes_nothing(place: Place, what: str) -> None:
    """Nor half of it; a second tier shows that the policy has seen the first."""
    place.publish(tier("broken"), **BROKEN[what])
    other = tier("other", podSelector={"matchLabels": {"app": "other"}})
    place.publish(other)
    eventually(lambda: attached_to(place.create(pod(labels={"app": "other"}), dry_run=True)), "other tier")
    made = place.create(pod(resources=memory("64Gi")), dry_run=True)
    assert not attached_to(made)
    assert "initContainers" not in made["spec"]
    assert [container.get("env") for container in made["spec"]["containers"]] == [None]


def test_without_an_operator_pods_are_made_as_they_are(place: Place) -> None:
    """A tier of which nobody has said anything, and one that was changed since."""
    place.create(tier())
    place.publish(tier("changed"), generation=7)
    assert not attached_to(place.create(pod()))


def test_of_two_tiers_one_is_given(place: Place) -> None:
    for name in ("first", "second"):
        place.publish(tier(name))
    eventually(lambda: attached_to(place.create(pod(), dry_run=True)), "effect of a tier")
    made = place.create(pod(), dry_run=True)
    [container] = made["spec"]["containers"]
    assert container["name"] == CONTAINER
    names = [variable["name"] for variable in container["env"]]
    assert len(names) == len(set(names))
    assert len(made["spec"]["initContainers"]) == 1


def test_of_two_tiers_that_leave_each_other_out_none_is_given(place: Place) -> None:
    """Whichever the API server asks first; pods that one of them alone selects get its tier."""
    chosen = {"one": {"app": "chat"}, "other": {"team": "llm"}}
    for name, labels in chosen.items():
        left_out = [{"name": of, "matchLabels": chosen[of]} for of in chosen if of != name]
        place.publish(tier(name, podSelector={"matchLabels": labels}), leavesOut=left_out)
    for name, labels in chosen.items():
        _until_given(place, name, labels)
    both = place.create(pod(labels=chosen["one"] | chosen["other"]), dry_run=True)
    assert not attached_to(both)


def _until_given(place: Place, name: str, labels: dict[str, str]) -> None:
    eventually(
        lambda: attached_to(place.create(pod(labels=labels), dry_run=True)) == name, f"effect of tier {name}"
    )
