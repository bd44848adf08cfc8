"""Who answers for a change, on the real API server: the second table of docs/operations/rbac.md."""

import json
from typing import Any

import pytest
from tests.cluster.harness.api.commands import Command, CommandError
from tests.cluster.harness.operator.places import ROOT
from tests.cluster.install.trust.tenants import DISK, Person, make, refusal, role, tier, write
from tests.shared.waiting import eventually

PAGE = ROOT / "docs" / "operations" / "rbac.md"
ROUTE = {"router": {"gateway": {"parentRef": {"name": "public"}, "hostnames": ["bank.example"]}}}
TAKE_OVER: list[tuple[str, dict[str, Any]]] = [
    (r"spec\.engine", {"engine": {"image": "evil/x:1"}}),
    (r"spec\.engine", {"engine": {"extraArgs": ["--seed", "1"]}}),
    (r"spec\.engine", {"engine": {"env": [{"name": "A"}]}}),
    (r"spec\.engine", {"engine": {"nodeSelector": {"a": "b"}}}),
    (r"spec\.engine", {"engine": {"tensorParallelSize": 2}}),
    (r"spec\.tiers", {"tiers": {"cpu": {"capacity": "2Gi"}}}),
    (r"spec\.tiers", {"tiers": {"disk": {"capacity": "2Gi"}}}),
    (r"spec\.prefixes", {"prefixes": [{"name": "a", "text": "a"}]}),
    (r"spec\.tenants", {"tenants": [{"name": "a"}]}),
    (r"spec\.imagePullSecrets", {"imagePullSecrets": [{"name": "s"}]}),
    (r"spec\.model", {"model": {"revision": "main"}}),
    (r"spec\.model, spec\.backend", {"backend": "LMCache", "model": {"revision": "main"}}),
]
"""What a tenant tries of a resource with somebody else's folder, and which field they are told."""
TAKEN_OVER = (
    r"this resource has a folder of the node, in a container that is root "
    r"\(spec\.tiers\.disk\.volume\.hostPath\), and only who may have that may change this as well; "
    r"leave it as it was, or have the cluster's owner give you 'use' on kvcachetiers\.kvtier\.dev/hostpath "
)
ROWS = {"picker", "relabel", "scale", "take-over", "give-up", "move-route", "granted", "grant-oneself", "see"}


def test_whoever_changes_answers_for_it(kubectl: Command, namespace: str, person: Person) -> None:
    """Rows relabel, scale, picker, take-over, give-up: of what an administrator made."""
    kubectl("create", "--namespace", namespace, "--filename", "-", stdin=tier(DISK))
    tenant = person("edit")
    as_tenant = ("--namespace", namespace, "--as", tenant)

    def patch(spec: dict[str, Any]) -> str:
        return kubectl("patch", "kvct", "asks", *as_tenant, "--type=merge", "--patch", json.dumps(spec))

    kubectl("label", "kvct", "asks", "a=b", *as_tenant)
    kubectl("scale", "kvct", "asks", "--replicas=2", *as_tenant)
    kubectl("scale", "kvct", "asks", "--current-replicas=2", "--replicas=1", *as_tenant)
    patch({"spec": {"replicas": 3}})
    patch({"spec": {"router": {"weights": {"queue": 3}}}})
    for router in ({"image": "x/y:1"}, {"replicas": 2}, {"networkPolicy": {"enabled": False}}):
        patch({"spec": {"router": router}})
    for where, change in TAKE_OVER:
        said = rf"denied request: {where}: {TAKEN_OVER}"
        with pytest.raises(CommandError, match=said):
            patch({"spec": change})
    said = (
        r"denied request: spec\.tiers\.disk\.volume\.hostPath: a folder of the node, in a container that is "
        r"root is more than you may change here; leave it as it was, or have the cluster's owner give you "
    )
    with pytest.raises(CommandError, match=said):
        patch({"spec": {"tiers": {"disk": {"volume": {"hostPath": {"path": "/"}}}}}})
    added = (
        r"denied request: spec\.model\.volume\.hostPath: .* is more than you may do here; write emptyDir, "
    )
    with pytest.raises(CommandError, match=added):
        patch({"spec": {"model": {"volume": {"hostPath": {"path": "/"}}}}})
    patch({"spec": {"engine": {"image": "evil/x:1"}, "tiers": {"disk": None}}})


def test_a_route_that_others_made_stays_as_it_is(kubectl: Command, namespace: str, person: Person) -> None:
    """Rows move-route, give-up."""
    asked = ROUTE | {"observability": {"serviceMonitor": True}}
    kubectl("create", "--namespace", namespace, "--filename", "-", stdin=tier(asked))
    as_tenant = ("--namespace", namespace, "--as", person("edit"), "--type=merge")

    def patch(spec: dict[str, Any]) -> str:
        return kubectl("patch", "kvct", "asks", *as_tenant, "--patch", json.dumps({"spec": spec}))

    patch({"engine": {"image": "x/y:2"}})
    for change in ({"hostnames": ["other.example"]}, {"parentRef": {"name": "other"}}):
        said = (
            r"denied request: spec\.router\.gateway: an HTTPRoute .* may change here; leave it as it was, or "
        )
        with pytest.raises(CommandError, match=said):
            patch({"router": {"gateway": change}})
    with pytest.raises(CommandError, match=r"denied request: spec\.observability\.prometheusRule: "):
        patch({"observability": {"prometheusRule": True}})
    patch({"router": {"gateway": None}, "observability": {"serviceMonitor": False}})


def test_a_monitor_stays_of_its_kind(kubectl: Command, namespace: str, person: Person) -> None:
    """Row give-up: without its gateway a PodMonitoring would become a ServiceMonitor."""
    tenant = person("edit")
    for name, provider in (("one", "istio"), ("two", "gke")):
        gateway = ROUTE["router"]["gateway"] | {"provider": provider}
        asked = json.loads(tier({"router": {"gateway": gateway}, "observability": {"serviceMonitor": True}}))
        document = json.dumps(asked | {"metadata": {"name": name}})
        kubectl("create", "--namespace", namespace, "--filename", "-", stdin=document)

    def give_up(name: str) -> str:
        at = ("--namespace", namespace, "--as", tenant, "--type=merge")
        return kubectl("patch", "kvct", name, *at, "--patch", '{"spec": {"router": {"gateway": null}}}')

    give_up("one")
    said = (
        r"denied request: spec\.router\.gateway: this resource has a ServiceMonitor \(spec\.observability\."
        r"serviceMonitor\), and only who may have that may change this as well; "
    )
    with pytest.raises(CommandError, match=said):
        give_up("two")


@pytest.mark.parametrize(
    ("gateway", "rights", "said"),
    [
        (
            {"parentRef": {"name": "public", "namespace": "kube-public"}},
            ["use kvcachetiers.kvtier.dev/routes"],
            r"a route on a Gateway of another namespace \(spec\.router\.gateway\.parentRef\.namespace\)",
        ),
        (
            {"parentRef": {"name": "public"}, "provider": "istio"},
            ["create httproutes.gateway.networking.k8s.io"],
            r"istio's DestinationRule \(spec\.router\.gateway\.provider\)",
        ),
    ],
)
def test_what_was_changed_is_told(  # noqa: PLR0913, PLR0917 - fixtures
    kubectl: Command,
    namespace: str,
    person: Person,
    gateway: dict[str, Any],
    rights: list[str],
    said: str,
) -> None:
    """Row move-route: by somebody who may have a route, and not what is beside it."""
    asked = tier({"router": {"gateway": gateway | {"hostnames": ["a.example"]}}})
    kubectl("create", "--namespace", namespace, "--filename", "-", stdin=asked)
    at = ("--namespace", namespace, "--as", person("edit", *rights), "--type=merge")
    change = {"spec": {"router": {"gateway": {"hostnames": ["b.example"]}}}}
    with pytest.raises(
        CommandError, match=rf"denied request: spec\.router\.gateway: this resource has {said}, and only who"
    ):
        kubectl("patch", "kvct", "asks", *at, "--patch", json.dumps(change))


def test_a_right_given_and_none_taken(kubectl: Command, namespace: str, person: Person) -> None:
    """Rows granted, grant-oneself."""
    make(
        kubectl,
        namespace,
        person("edit", "use kvcachetiers.kvtier.dev/hostpath"),
        tier(DISK),
    )
    with pytest.raises(CommandError, match="attempting to grant RBAC permissions not currently held"):
        write(kubectl, namespace, person("admin"), role("mine", "use kvcachetiers.kvtier.dev/hostpath"))


def test_a_template_that_others_made_is_nobody_elses(
    kubectl: Command, namespace: str, person: Person
) -> None:
    """Another image would run with its service account."""
    asked = tier({"engine": {"podTemplate": {"spec": {"serviceAccountName": "theirs"}}}})
    kubectl("create", "--namespace", namespace, "--filename", "-", stdin=asked)
    rights = tuple(f"{verb} kvcachetiers.kvtier.dev" for verb in ("create", "get", "patch"))
    pods = person("", *rights, "use kvcachetiers.kvtier.dev/workloads")
    at = ("--namespace", namespace, "--as", pods, "--type=merge")
    change = json.dumps({"spec": {"engine": {"image": "evil/x:1"}}})
    said = r"denied request: spec\.engine: this resource has containers, volumes and a service account "
    with pytest.raises(CommandError, match=said):
        kubectl("patch", "kvct", "asks", *at, "--patch", change)
    kubectl("patch", "kvct", "asks", *at, "--patch", '{"spec": {"replicas": 2}}')


@pytest.mark.parametrize(
    ("privilege", "asked"), [("hostpath", DISK), ("routes", ROUTE)], ids=["hostpath", "routes"]
)
def test_the_right_is_given_as_the_docs_say(
    kubectl: Command, namespace: str, person: Person, privilege: str, asked: dict[str, Any]
) -> None:
    """The objects of docs/operations/rbac.md, and its command that tells who has the right."""
    given = PAGE.read_text().partition("\n### To give a right\n")[2]
    objects = given.partition("```yaml\n")[2].partition("```")[0]
    ours = objects.replace("namespace: models", f"namespace: {namespace}").replace(
        "/hostpath", f"/{privilege}"
    )
    member = ("--namespace", namespace, "--as", person("edit"), "--as-group", "model-team")
    one = ("kvcachetiers.kvtier.dev", f"--subresource={privilege}")

    def may() -> bool:
        try:
            return kubectl("auth", "can-i", "use", *one, *member) == "yes\n"
        except CommandError:
            return False

    assert not may()
    kubectl("create", "--filename", "-", stdin=ours)
    eventually(may, "the right")
    make = ("create", "--filename", "-", *member)
    kubectl(*make, stdin=tier(asked))
    command = " ".join(["kubectl auth can-i use", *one]).replace(privilege, "hostpath")
    assert command in given
    # what one would write: an object of that name
    with pytest.raises(CommandError, match="no"):
        kubectl("auth", "can-i", "use", f"kvcachetiers.kvtier.dev/{privilege}", *member)


def test_view_sees(kubectl: Command, namespace: str, person: Person) -> None:
    """Row see."""
    viewer = person("view")
    kubectl("create", "--namespace", namespace, "--filename", "-", stdin=tier({}))
    as_viewer = ("kvct", "asks", "--namespace", namespace, "--as", viewer)
    for subresource in ("", "status", "scale"):
        kubectl("get", *as_viewer, f"--subresource={subresource}")
    with pytest.raises(CommandError, match="cannot patch resource"):
        kubectl("scale", *as_viewer, "--replicas=2")
    assert "cannot create resource" in refusal(kubectl, namespace, viewer, tier({}))
