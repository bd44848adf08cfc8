import re
from typing import Any

import promql_parser
import pytest

from kvtier_operator.install import install_objects
from kvtier_operator.install.deployment import network_policy, pod_disruption_budget
from kvtier_operator.install.monitoring import prometheus_rule, service_monitor
from kvtier_operator.install.rbac import NAMESPACED, edit_role, role, role_binding, view_role
from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.base.names import MANAGED_BY
from kvtier_operator.reconcile.observability import REGISTRY

INSTALL = Installation(name="op", namespace="system", image="registry.example/op@sha256:1")
OBJECTS = {
    document["kind"]: document
    for document in install_objects(INSTALL)
    if "op-" not in document["metadata"]["name"]
}


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = OBJECTS["Deployment"]["spec"]["template"]["spec"]
    return spec


def test_one_pod_never_two() -> None:
    spec = OBJECTS["Deployment"]["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_what_comes_first() -> None:
    assert list(OBJECTS) == [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "Service",
        "Deployment",
    ]


def test_all_refer_to_each_other() -> None:
    subject = {"kind": "ServiceAccount", "name": "op", "namespace": "system"}
    assert OBJECTS["ClusterRoleBinding"]["subjects"] == [subject]
    assert OBJECTS["ClusterRoleBinding"]["roleRef"]["name"] == OBJECTS["ClusterRole"]["metadata"]["name"]
    assert pod()["serviceAccountName"] == OBJECTS["ServiceAccount"]["metadata"]["name"]
    assert pod()["containers"][0]["image"] == "registry.example/op@sha256:1"
    labels = OBJECTS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for selector in (
        OBJECTS["Deployment"]["spec"]["selector"]["matchLabels"],
        OBJECTS["Service"]["spec"]["selector"],
        pod_disruption_budget(INSTALL)["spec"]["selector"]["matchLabels"],
        network_policy(INSTALL)["spec"]["podSelector"]["matchLabels"],
        service_monitor(INSTALL)["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()


def test_ports_by_name() -> None:
    container = pod()["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    environment = {variable["name"]: variable["value"] for variable in container["env"]}
    assert environment["KVTIER_METRICS_PORT"] == str(ports["metrics"]) == "8080"
    assert environment["KVTIER_HEALTH_PORT"] == str(ports["health"]) == "8081"
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": "health"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}
    assert [port["targetPort"] for port in OBJECTS["Service"]["spec"]["ports"]] == ["metrics"]


def test_a_namespaced_operator() -> None:
    made, bound = role(INSTALL, "models", NAMESPACED), role_binding(INSTALL, "models")
    assert made["metadata"]["namespace"] == bound["metadata"]["namespace"] == "models"
    assert bound["subjects"][0]["namespace"] == "system"
    assert bound["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "op"}


@pytest.mark.parametrize("kind", OBJECTS)
def test_the_operator_does_not_take_its_own_objects_for_children(kind: str) -> None:
    assert OBJECTS[kind]["metadata"]["labels"].get("app.kubernetes.io/managed-by") != MANAGED_BY


def test_alerts_name_the_installation_and_metrics_that_are_there() -> None:
    [group] = prometheus_rule(INSTALL)["spec"]["groups"]
    metrics = {f"{family.name}_total" for family in REGISTRY.collect() if family.type == "counter"}
    for rule in group["rules"]:
        promql_parser.parse(rule["expr"])
        assert 'namespace="system", job="op"' in rule["expr"]
        assert set(re.findall(r"kvtier_\w+", rule["expr"])) <= metrics


def test_people_s_roles_join_kubernetes_own() -> None:
    view, edit = view_role(INSTALL), edit_role(INSTALL)
    joins = "rbac.authorization.k8s.io/aggregate-to-"
    assert {key for key in view["metadata"]["labels"] if key.startswith(joins)} == {
        f"{joins}{name}" for name in ("view", "edit", "admin")
    }
    assert f"{joins}view" not in edit["metadata"]["labels"]
    written = {verb for rule in view["rules"] for verb in rule["verbs"]}
    assert written == {"get", "list", "watch"}
