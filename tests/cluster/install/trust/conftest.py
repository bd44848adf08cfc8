"""The chart as installed, and people with single rights in a namespace."""

import pytest
from kubernetes import client
from tests.cluster.harness.api.commands import Command, CommandError
from tests.cluster.harness.operator.places import CHART, CRD, OPERATOR
from tests.cluster.install.trust.tenants import Person, may, role, tier
from tests.shared.waiting import eventually


@pytest.fixture
def person(installed: None, site_api: client.ApiClient, kubectl: Command, namespace: str) -> Person:
    del installed
    number = iter(range(1000))

    def make(known: str, *rights: str) -> str:
        name = f"person{next(number)}"
        at = ("--namespace", namespace)
        if known:
            kubectl("create", "rolebinding", name, f"--clusterrole={known}", f"--user={name}", *at)
        if rights:
            kubectl("create", *at, "--filename", "-", stdin=role(name, *rights))
            kubectl("create", "rolebinding", f"{name}-more", f"--role={name}", f"--user={name}", *at)
        verb = {"edit": "create", "admin": "create", "view": "list", "": "create"}[known]
        # the authorizer learns of a binding from a watch
        for right in (f"{verb} kvcachetiers.kvtier.dev", *rights):
            eventually(lambda right=right: may(site_api, namespace, name, right), f"{right} for {name}")  # type: ignore[misc]
        return name

    return make


@pytest.fixture(scope="module")
def installed(helm: Command, kubectl: Command, system: str) -> None:
    helm("install", "kvtier", CHART, "--namespace", system)
    kubectl("wait", "--for=condition=Established", CRD, "--timeout=30s")
    # aggregated once the role has the rules
    eventually(
        lambda: "kvcachetiers" in kubectl("get", "clusterrole", "admin", "--output", "yaml"), "aggregation"
    )
    probe = role("probe", "create kvcachetiers.kvtier.dev")
    kubectl("create", "--namespace", system, "--filename", "-", stdin=probe)
    kubectl("create", "rolebinding", "probe", "--role=probe", "--user=probe", "--namespace", system)
    eventually(lambda: _is_asked(kubectl, system), "effect of the policy")
    kubectl("delete", "role,rolebinding", "probe", "--namespace", system)
    policy = kubectl.json("get", "validatingadmissionpolicy", OPERATOR)
    assert "expressionWarnings" not in policy.get("status", {}).get("typeChecking", {})


def _is_asked(kubectl: Command, namespace: str) -> bool:
    """Whether it is in force: who may make no pods would get them."""
    at = ("--namespace", namespace, "--as", "probe", "--dry-run=server")
    try:
        kubectl("create", *at, "--filename", "-", stdin=tier({}))
    except CommandError as error:
        return "denied request: spec: " in str(error)
    return False
