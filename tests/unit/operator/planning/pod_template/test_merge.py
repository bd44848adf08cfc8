"""Patches on a pod, each with the result that `kubectl patch --type strategic` has."""

from typing import Any

import pytest

from kvtier_operator.planning.base.merge import merged, without_containers

POD: dict[str, Any] = {
    "containers": [{"name": "engine", "args": ["a"], "env": [{"name": "A", "value": "1"}], "ports": []}],
    "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    "securityContext": {"runAsUser": 1000, "runAsNonRoot": True},
    "tolerations": [{"key": "a"}],
}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({}, {}),
        ({"schedulerName": "s"}, {"schedulerName": "s"}),
        ({"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        ({"securityContext": {"fsGroup": 7}}, {"securityContext": POD["securityContext"] | {"fsGroup": 7}}),
        ({"securityContext": {"$patch": "replace", "fsGroup": 7}}, {"securityContext": {"fsGroup": 7}}),
        (
            {"volumes": [{"name": "ca", "configMap": {"name": "ca"}}]},
            {"volumes": [*POD["volumes"], {"name": "ca", "configMap": {"name": "ca"}}]},
        ),
        (
            {"containers": [{"name": "engine", "env": [{"name": "B"}, {"name": "A", "value": "2"}]}]},
            {"containers": [POD["containers"][0] | {"env": [{"name": "A", "value": "2"}, {"name": "B"}]}]},
        ),
        (
            {"containers": [{"name": "more", "ports": [{"containerPort": 1}]}]},
            {"containers": [*POD["containers"], {"name": "more", "ports": [{"containerPort": 1}]}]},
        ),
        # no pod's lists, whatever they are called
        ({"affinity": {"env": ["a", {"b": 1}]}}, {"affinity": {"env": ["a", {"b": 1}]}}),
    ],
)
def test_a_patch(patch: dict[str, Any], expected: dict[str, Any]) -> None:
    before = repr(POD)
    assert merged(POD, patch) == POD | expected
    assert repr(POD) == before


def test_a_patch_that_was_merged_changes_nothing_more() -> None:
    patch = {"containers": [{"name": "more"}, {"name": "engine", "args": ["b"]}], "volumes": [{"name": "v"}]}
    once = merged(POD, patch)
    assert merged(once, patch) == once


def test_another_pod_has_none_of_the_containers() -> None:
    template = {"metadata": {"labels": {}}, "spec": {"containers": [], "runtimeClassName": "r"}}
    assert without_containers(template) == {"metadata": {"labels": {}}, "spec": {"runtimeClassName": "r"}}
