"""Rights that somebody took away: what the operator cannot finish is told by a way that is still open."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.operator.places import CHART, OPERATOR, SYSTEM
from tests.cluster.install.rights.told import RESOURCE, observed, ready
from tests.cluster.install.running import run_installed
from tests.shared.waiting import eventually


@pytest.mark.usefixtures("clean_system")
def test_it_says_what_it_may_not(
    site: ControlPlane, kubectl: Command, helm: Command, namespace: str, tmp_path: Path
) -> None:
    """And goes on by itself when it may again."""
    helm("install", "kvtier", CHART, "--namespace", SYSTEM)
    role = kubectl.json("get", "clusterrole", OPERATOR)
    with run_installed(site, kubectl, tmp_path) as operator:
        kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=json.dumps(RESOURCE))
        eventually(lambda: ready(kubectl, namespace, "Unschedulable"), "word of pods without a node")

        # a Service that vanishes has it ask whether the resource is still there
        _set_rules(kubectl, [_without(rule, "kvcachetiers", "get") for rule in role["rules"]])
        kubectl("delete", "service", "qwen-engine", "--namespace", namespace)
        told = eventually(lambda: ready(kubectl, namespace, "RoundFailed"), "word in the status")
        assert told["status"] == "Unknown"
        assert 'cannot get resource "kvcachetiers"' in told["message"]

        _set_rules(kubectl, role["rules"])
        eventually(lambda: ready(kubectl, namespace, "Unschedulable"), "the same word again")

        # neither can it be said in the status: an Event does
        _set_rules(kubectl, [_without(rule, "kvcachetiers/status", "patch") for rule in role["rules"]])
        change = json.dumps({"spec": {"replicas": 2}})
        kubectl("patch", "kvct", "qwen", "--namespace", namespace, "--type=merge", "--patch", change)
        eventually(lambda: "kvcachetiers/status" in _events(kubectl, namespace), "an Event")
        failed = operator.metrics()["kvtier_reconciles_total"]
        eventually(lambda: operator.metrics()["kvtier_reconciles_total"] > failed + 2, "more tries")
        assert _events(kubectl, namespace).count("kvcachetiers/status") == 1
        _set_rules(kubectl, role["rules"])
        eventually(lambda: observed(kubectl, namespace) == 2, "status of the change")


def _without(rule: dict[str, Any], resource: str, verb: str) -> dict[str, Any]:
    """A rule less one verb."""
    if rule["resources"] != [resource]:
        return rule
    # a rule needs one: none of the operator's own
    return rule | {"verbs": [each for each in rule["verbs"] if each != verb] or ["deletecollection"]}


def _set_rules(kubectl: Command, rules: list[dict[str, Any]]) -> None:
    patch = json.dumps([{"op": "replace", "path": "/rules", "value": rules}])
    kubectl("patch", "clusterrole", OPERATOR, "--type=json", "--patch", patch)


def _events(kubectl: Command, namespace: str) -> str:
    return kubectl("events", "--namespace", namespace)
