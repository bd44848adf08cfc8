"""Rights to see that somebody took away: nothing is written on what is no longer known, and that is said.

A server asks for rights when a watch begins, so the watches that there are break here; else it takes minutes.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from tests.cluster.chaos.proxy import Proxy, running_proxy
from tests.cluster.harness.api.account import Account
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.operator.operator import Operator, running_operator
from tests.cluster.harness.operator.places import CHART, OPERATOR, SYSTEM
from tests.cluster.harness.programs.healthz import answers_ok
from tests.cluster.install.rights.told import RESOURCE, observed, ready
from tests.shared.waiting import eventually

_WAYS: Final = 2
"""To see: list and watch are refused each in its words, and each is logged once."""
SEEING: Final = ("get", "list", "watch")


@pytest.fixture
def way(site: ControlPlane, helm: Command, clean_system: str) -> Iterator[Proxy]:
    """The operator's way to the API server, with the rights of the chart."""
    helm("install", "kvtier", CHART, "--namespace", clean_system)
    with _in_a_thread(Account(site, SYSTEM, OPERATOR)) as proxy:
        yield proxy


@pytest.fixture
def operator(way: Proxy, tmp_path: Path) -> Iterator[Operator]:
    with running_operator(way.kubeconfig(tmp_path), tmp_path / "operator.log") as running:
        yield running


@pytest.mark.parametrize("kind", ["deployments", pytest.param("pods", marks=pytest.mark.long)])
def test_what_is_no_longer_seen_is_neither_told_nor_written(
    way: Proxy, operator: Operator, kubectl: Command, namespace: str, kind: str
) -> None:
    at = ("--namespace", namespace)
    kubectl("apply", *at, "--filename", "-", stdin=json.dumps(RESOURCE))
    eventually(lambda: ready(kubectl, namespace).get("reason") == "Unschedulable", "word of the pods")
    eventually(lambda: answers_ok(operator.ready_url), "readiness")
    before = _uids(kubectl, namespace)
    with _taken_away(kubectl, kind):
        way.end_watches()
        told = eventually(lambda: ready(kubectl, namespace, "RoundFailed"), "word in the status")
        assert told["status"] == "Unknown"
        assert f'resource "{kind}"' in told["message"]
        assert not answers_ok(operator.ready_url)
        written = operator.writes("Deployment")
        change = json.dumps({"spec": {"tiers": {"cpu": {"capacity": "50Gi"}}}})
        kubectl("patch", "kvct", "qwen", *at, "--type=merge", "--patch", change)
        failed = operator.metrics()["kvtier_reconciles_total"]
        eventually(lambda: operator.metrics()["kvtier_reconciles_total"] > failed, "a round")
        assert operator.writes("Deployment") == written
    eventually(lambda: observed(kubectl, namespace) == 2, "status of the change")
    eventually(lambda: ready(kubectl, namespace).get("reason") != "RoundFailed", "another word")
    eventually(lambda: answers_ok(operator.ready_url), "readiness")
    assert _uids(kubectl, namespace) == before
    log = operator.process.log.read_text()
    assert log.count(f'resource "{kind}"') <= _WAYS
    assert "Traceback" not in log


def test_resources_that_are_no_longer_seen_stay_as_they_are(
    way: Proxy, operator: Operator, kubectl: Command, namespace: str
) -> None:
    at = ("--namespace", namespace)
    kubectl("apply", *at, "--filename", "-", stdin=json.dumps(RESOURCE))
    eventually(lambda: ready(kubectl, namespace).get("reason") == "Unschedulable", "word of the pods")
    before = _uids(kubectl, namespace)
    with _taken_away(kubectl, "kvcachetiers"):
        way.end_watches()
        eventually(lambda: not answers_ok(operator.ready_url), "unreadiness")
        assert 'resource "kvcachetiers"' in operator.process.log.read_text()
        kubectl("patch", "kvct", "qwen", *at, "--type=merge", "--patch", '{"spec": {"replicas": 2}}')
        kubectl("delete", "service", "qwen-engine", *at)
    eventually(lambda: observed(kubectl, namespace) == 2, "status of the change")
    eventually(lambda: answers_ok(operator.ready_url), "readiness")
    eventually(lambda: _uids(kubectl, namespace).keys() == before.keys(), "all objects")
    kept = before.items() & _uids(kubectl, namespace).items()
    assert before.keys() - dict(kept).keys() == {"service/qwen-engine"}
    assert "Traceback" not in operator.process.log.read_text()


@contextmanager
def _taken_away(kubectl: Command, resource: str) -> Iterator[None]:
    """The operator may not see a kind."""
    rules = kubectl.json("get", "clusterrole", OPERATOR)["rules"]
    _set_rules(kubectl, [_without(rule, resource) for rule in rules])
    try:
        yield
    finally:
        _set_rules(kubectl, rules)


def _without(rule: dict[str, Any], resource: str) -> dict[str, Any]:
    """A rule that does not let it see a kind; its other kinds are in no rule with it."""
    if resource not in rule["resources"]:
        return rule
    verbs = [each for each in rule["verbs"] if each not in SEEING]
    return rule | {"verbs": verbs or ["deletecollection"]}  # a rule needs one: none of the operator's own


def _set_rules(kubectl: Command, rules: list[dict[str, Any]]) -> None:
    patch = json.dumps([{"op": "replace", "path": "/rules", "value": rules}])
    kubectl("patch", "clusterrole", OPERATOR, "--type=json", "--patch", patch)


@contextmanager
def _in_a_thread(account: Account) -> Iterator[Proxy]:
    """A proxy with an account's rights, beside a test that waits."""
    loop, ready, ends = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    found: list[Proxy] = []

    async def run() -> None:
        async with running_proxy(account.configuration()) as proxy:
            found.append(proxy)
            ready.set()
            await ends.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(ends.set)
        thread.join(30)
        loop.close()


def _uids(kubectl: Command, namespace: str) -> dict[str, str]:
    """Of the objects of the resource, by kind and name."""
    kinds = "serviceaccount,configmap,service,role,rolebinding,deployment"
    found = kubectl.json(
        "get", kinds, "--namespace", namespace, "--selector", "app.kubernetes.io/instance=qwen"
    )
    return {
        f"{item['kind'].lower()}/{item['metadata']['name']}": item["metadata"]["uid"]
        for item in found["items"]
    }
