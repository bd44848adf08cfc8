"""The chart, by the real helm."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.harness.api.commands import Command, CommandError
from tests.cluster.harness.operator.places import CHART, CI_VALUES, CRD, MANIFESTS, OPERATOR, SYSTEM

from kvtier_operator.install.monitoring import dashboard
from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.base.names import POLICY_VERSIONS
from kvtier_operator.planning.images import PUBLISHED, ImageName

EVERYTHING = CHART / "ci" / "everything-values.yaml"
# What only a chart says of its objects.
OF_CHARTS = {"app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"}
MONITORING = ("serviceMonitor", "prometheusRule")
ENDPOINT = {"interval", "scrapeTimeout", "relabelings", "metricRelabelings"}
SPEC = {"model": {"name": "Qwen/Qwen3-32B"}, "tiers": {"cpu": {"capacity": "1Gi"}}}
TIER = {"name": "small", "spec": SPEC}


@pytest.mark.parametrize("values", [None, *CI_VALUES], ids=lambda path: path.stem if path else "defaults")
def test_lint(helm: Command, values: Path | None) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART, *_values(values))


def test_defaults_are_the_manifests(helm: Command) -> None:
    """One source: chart and kustomize differ only in what a chart adds."""
    rendered = helm("template", "kvtier", CHART, "--namespace", SYSTEM, "--skip-tests")
    of_chart = {_key(each): _without_chart(each) for each in yaml.safe_load_all(rendered) if each}
    of_base = {
        _key(document): document
        for path in (MANIFESTS / "base").glob("*.yaml")
        if path.name != "kustomization.yaml"
        for document in yaml.safe_load_all(path.read_text())
        if document["kind"] != "Namespace"
    }
    assert of_chart.keys() == of_base.keys()
    for key, document in of_base.items():
        if key[0] != "CustomResourceDefinition":
            assert of_chart[key] == document


def test_helm_leaves_the_dashboard_as_it_is(helm: Command) -> None:
    """Legends are in braces, too."""
    rendered = yaml.safe_load_all(helm("template", "kvtier", CHART, "--values", EVERYTHING))
    [made] = [
        document
        for document in rendered
        if document and document["metadata"]["name"] == f"{OPERATOR}-dashboard"
    ]
    assert made["data"] == dashboard(Installation())["data"]
    assert made["metadata"]["labels"].items() >= {"grafana_dashboard": "1", "team": "inference"}.items()
    assert made["metadata"]["annotations"]["grafana_folder"] == "kvtier"


def test_labels_and_annotations_of_all_objects_are_in_no_selector(helm: Command) -> None:
    """What is said of one object alone goes before what is said of all."""
    rendered = helm("template", "kvtier", CHART, "--namespace", SYSTEM, "--values", EVERYTHING)
    made = {_key(document): document for document in yaml.safe_load_all(rendered) if document}
    del made["ConfigMap", "kvtier-note"]  # one of extraObjects
    for document in made.values():
        assert document["metadata"]["labels"]["cost-center"] == "1"
        assert "example.com/owner" in document["metadata"]["annotations"]
        assert "cost-center" not in json.dumps(document.get("spec", {}).get("selector"))
    owners = {
        kind: made[kind, OPERATOR]["metadata"]["annotations"]["example.com/owner"]
        for kind in ("Service", "ServiceAccount")
    }
    assert owners == {"Service": "platform", "ServiceAccount": "inference"}
    teams = {name: made["KVCacheTier", name]["metadata"]["labels"]["team"] for name in ("qwen3-32b", "llama")}
    assert teams == {"qwen3-32b": "inference", "llama": "platform"}
    pod = made["Deployment", OPERATOR]["spec"]["template"]["metadata"]["labels"]
    assert (pod["team"], pod["cost-center"]) == ("inference", "1")
    assert made["Pod", f"{OPERATOR}-test"]["metadata"]["annotations"]["helm.sh/hook"] == "test"


def test_monitoring_objects_may_be_elsewhere(helm: Command) -> None:
    places = ",".join(f"{name}.enabled=true,{name}.namespace=watching" for name in MONITORING)
    rendered = yaml.safe_load_all(
        helm("template", "kvtier", CHART, "--namespace", SYSTEM, "--values", EVERYTHING, "--set", places)
    )
    made = {document["kind"]: document for document in rendered if document}
    for kind in ("ServiceMonitor", "PrometheusRule"):
        assert made[kind]["metadata"]["namespace"] == "watching"
    spec = made["ServiceMonitor"]["spec"]
    assert spec["namespaceSelector"] == {"matchNames": [SYSTEM]}
    [endpoint] = spec["endpoints"]
    given = yaml.safe_load(EVERYTHING.read_text())["serviceMonitor"]
    assert endpoint == {"port": "metrics"} | {key: given[key] for key in given if key in ENDPOINT}


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        ((), True),
        (("--set", "global.imageRegistry=registry.example"), False),
        (("--set", "image.repository=registry.example/own"), False),
    ],
)
def test_images_that_are_nobodys_are_warned_of(
    helm: Command, values: tuple[str, ...], *, warned: bool
) -> None:
    said = helm("install", "kvtier", CHART, "--namespace", SYSTEM, "--dry-run=client", *values)
    assert ("nothing can be pulled from registry.invalid" in said) is warned


def test_the_chart_of_a_release_warns_of_no_registry(helm: Command, tmp_path: Path) -> None:
    chart = tmp_path / CHART.name
    shutil.copytree(CHART, chart)
    images = {name.value: f"{path}@sha256:{'0' * 64}" for name, path in PUBLISHED.items()}
    release = {"registry": "registry.example/team", "images": images | {"operator": "kvtier/operator:1"}}
    (chart / "release.json").write_text(json.dumps(release))
    said = helm("install", "kvtier", chart, "--namespace", SYSTEM, "--dry-run=client")
    assert "registry.invalid" not in said
    assert "image: registry.example/team/kvtier/operator:1" in said


def test_values_kept_from_a_release_without_the_dashboard_make_none(helm: Command) -> None:
    rendered = helm("template", "kvtier", CHART, "--set", "dashboard=null")
    assert f"{OPERATOR}-dashboard" not in rendered


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"operators": {}}, "operators"),
        ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({"tiers": [{"name": "x", "spec": {"model": SPEC["model"]}}]}, "tiers"),
        ({"tiers": [TIER | {"spec": SPEC | {"backends": "Native"}}]}, "backends"),
        ({"tiers": [TIER | {"spec": SPEC | {"tiers": {"cpu": {"capacity": "100GB"}}}}]}, "capacity"),
        ({"picker": {"flavor": "envoy"}}, "flavor"),
        ({"picker": {"resources": {"limits": {"cpu": True}}}}, "cpu"),
        ({"images": {"engines": "a/b:1"}}, "engines"),
        ({"images": {"vllm": "a/b:1,doctor=a/c:1"}}, "vllm"),
        ({"global": {"imageRegistry": "https://registry.example"}}, "imageRegistry"),
        ({"global": {"imagePullSecrets": ["a,b"]}}, "imagePullSecrets"),
        ({"watchNamespaces": ["other"], "tiers": [TIER]}, "watchNamespaces"),
        ({"watchNamespaces": ["other", "other"]}, "watchNamespaces"),
        ({"watchNamespaces": ["Not/A.Name"]}, "watchNamespaces"),
        ({"image": {"repository": "kvtier/operator:1"}}, "repository"),
        ({"image": {"repository": f"kvtier/operator@sha256:{'0' * 64}"}}, "repository"),
        ({"image": {"tag": "a b"}}, "tag"),
        ({"operator": {"policy": {"hostPath": "never"}}}, "hostPath"),
        ({"operator": {"policy": {"ipcLock": ["a"]}}}, "ipcLock"),
        ({"operator": {"extraEnv": [{"name": "A", "values": "b"}]}}, "extraEnv"),
        ({"operator": {"extraEnv": {"A": "b"}}}, "extraEnv"),
        ({"operator": {"logLevel": "trace"}}, "logLevel"),
        ({"operator": {"volumes": {"name": "a"}}}, "volumes"),
        ({"serviceMonitor": {"scrapeTimeout": "10"}}, "scrapeTimeout"),
        (
            {"commonLabels": {"app.kubernetes.io/name": "x"}},
            "commonLabels: app.kubernetes.io/name is set by the chart: remove it",
        ),
        (
            {"operator": {"podLabels": {"app.kubernetes.io/instance": "x"}}},
            "operator.podLabels: app.kubernetes.io/instance is set by the chart: remove it",
        ),
        (
            {"operator": {"extraEnv": [{"name": "KVTIER_POLICY", "value": "{}"}]}},
            "operator.extraEnv: KVTIER_POLICY is made by other values: remove it",
        ),
        (
            {"operator": {"extraEnv": [{"name": "A", "value": "b"}] * 2}},
            "operator.extraEnv: A is there twice: keep one",
        ),
        ({"nameOverride": "Own"}, "nameOverride"),
        ({"fullnameOverride": "own_name"}, "fullnameOverride"),
        ({"openshift": "yes"}, "openshift"),
        ({"dashboard": {"enable": True}}, "dashboard"),
        ({"extraObjects": {"kind": "ConfigMap"}}, "extraObjects"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_values_are_refused_by_name(
    helm: Command, tmp_path: Path, values: dict[str, Any], names: str
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    with pytest.raises(CommandError, match=names):
        helm("template", "kvtier", CHART, "--namespace", SYSTEM, "--values", file)


def test_values_kept_from_a_release_without_images_are_enough(helm: Command) -> None:
    """What helm upgrade --reuse-values leaves: none of the new chart's defaults."""
    kept = ("--set", f"images=null,image.digest=sha256:{'0' * 64}")
    said = helm("install", "kvtier", CHART, "--namespace", SYSTEM, "--dry-run=client", *kept)
    assert "the doctor in engines' pods is pulled by its tag (images.doctor)" in said


@pytest.mark.parametrize("enabled", [True, False])
def test_who_may_edit_may_write_tiers_only_with_the_policy(helm: Command, *, enabled: bool) -> None:
    given = f"admissionPolicy.enabled={str(enabled).lower()}"
    rendered = yaml.safe_load_all(helm("template", "kvtier", CHART, "--set", given))
    made = {(document["kind"], document["metadata"]["name"]) for document in rendered if document}
    assert (("ClusterRole", f"{OPERATOR}-edit") in made) is enabled
    assert (("ValidatingAdmissionPolicyBinding", OPERATOR) in made) is enabled
    assert ("ClusterRole", f"{OPERATOR}-view") in made


def test_values_kept_from_a_release_without_the_policy_have_it(helm: Command) -> None:
    rendered = helm("template", "kvtier", CHART, "--set", "admissionPolicy=null")
    assert "kind: ValidatingAdmissionPolicyBinding" in rendered


@pytest.mark.parametrize(
    ("served", "version"),
    [(POLICY_VERSIONS, POLICY_VERSIONS[0]), (POLICY_VERSIONS[1:], POLICY_VERSIONS[1]), ((), "")],
)
def test_pods_of_others_are_changed_where_the_cluster_can(
    helm: Command, served: tuple[str, ...], version: str
) -> None:
    rendered = _attaching(helm, served, "--set", "global.imageRegistry=registry.example")
    assert [document["apiVersion"] for document in rendered] == ([version] * 2 if version else [])
    if version:
        [mutation] = rendered[0]["spec"]["mutations"]
        image = f"registry.example/{PUBLISHED[ImageName.CONNECTOR]}"
        assert f'"image": dyn("{image}")' in mutation["jsonPatch"]["expression"]


def test_the_payload_comes_as_the_values_say(helm: Command) -> None:
    policy, _binding = _attaching(helm, POLICY_VERSIONS, "--set", "attach.payload=image-volume")
    by_manifests = yaml.safe_load(
        (MANIFESTS / "components/attach-image-volume/mutating_admission_policy.yaml").read_text()
    )
    assert policy["spec"] == by_manifests["spec"]


def test_whoever_wants_no_pods_changed_gets_no_policy(helm: Command) -> None:
    assert _attaching(helm, POLICY_VERSIONS, "--set", "attach.enabled=false") == []


def _attaching(helm: Command, served: tuple[str, ...], *values: str) -> list[dict[str, Any]]:
    """The policy and its binding, for a cluster that serves these versions."""
    apis = (f"--api-versions={version}/MutatingAdmissionPolicy" for version in served)
    rendered = yaml.safe_load_all(helm("template", "kvtier", CHART, *apis, *values))
    return [document for document in rendered if document and document["kind"].startswith("Mutating")]


def test_the_name_that_charts_have(helm: Command) -> None:
    for given in ("nameOverride=own", "fullnameOverride=own", "nameOverride=other,fullnameOverride=own"):
        rendered = yaml.safe_load_all(helm("template", "kvtier", CHART, "--set", given))
        assert "own" in {
            document["metadata"]["name"]
            for document in rendered
            if document and document["kind"] == "Deployment"
        }


def test_a_namespace_that_is_not_there_is_refused_before_anything_changes(
    helm: Command, kubectl: Command, clean_system: str, namespace: str
) -> None:
    at = ("--namespace", clean_system)
    served = f"watchNamespaces={{{namespace},{clean_system}}}"
    nope = f"watchNamespaces={{{namespace},nope}}"
    refusal = (
        r"watchNamespaces: namespace nope does not exist: make it first \(kubectl create namespace nope\)"
    )
    with pytest.raises(CommandError, match=refusal):
        helm("install", "kvtier", CHART, *at, "--set", nope)
    assert _names(kubectl, "deployment") == []

    helm("install", "kvtier", CHART, *at, "--set", served)
    before = kubectl.json("get", "deployment", OPERATOR, *at)["metadata"]["generation"]
    with pytest.raises(CommandError, match=refusal):
        helm("upgrade", "kvtier", CHART, *at, "--set", nope)
    assert kubectl.json("get", "deployment", OPERATOR, *at)["metadata"]["generation"] == before

    # nothing of the cluster is known there, or rights are somebody else's
    for offline in (["template"], ["upgrade", "--dry-run=client"]):
        assert "namespace: nope" in helm(*offline, "kvtier", CHART, *at, "--set", nope)
    helm("upgrade", "kvtier", CHART, *at, "--set", f"{nope},rbac.create=false")


def test_the_release_s_namespace_may_be_made_with_it(helm: Command, kubectl: Command) -> None:
    at = ("--namespace", "made-by-helm")
    values = ("--set", "watchNamespaces={made-by-helm},crds.enabled=false")
    try:
        helm("install", "kvtier", CHART, *at, "--create-namespace", *values)
        assert kubectl("get", "role", OPERATOR, *at)
    finally:
        helm("uninstall", "kvtier", *at, "--ignore-not-found")
        kubectl("delete", "namespace", "made-by-helm", "--ignore-not-found", "--wait=false")


def test_offline_the_tiers_are_rendered(helm: Command) -> None:
    rendered = helm("template", "kvtier", CHART, "--namespace", SYSTEM, "--values", EVERYTHING)
    tiers = [
        document
        for document in yaml.safe_load_all(rendered)
        if document and document["kind"] == "KVCacheTier"
    ]
    assert [tier["metadata"]["name"] for tier in tiers] == ["qwen3-32b", "llama"]
    assert [tier["spec"]["router"]["flavor"] for tier in tiers] == ["gaie", "llm-d"]
    assert [tier["spec"]["router"]["failureMode"] for tier in tiers] == ["FailClose", "FailClose"]


def test_install_upgrade_rollback_uninstall(helm: Command, kubectl: Command, clean_system: str) -> None:
    at = ("--namespace", clean_system)
    first = helm("install", "kvtier", CHART, *at, *_values(EVERYTHING))
    assert "2 KVCacheTier(s) of your values are NOT installed yet" in first
    kubectl("wait", "--for=condition=Established", CRD, "--timeout=30s")
    assert _names(kubectl, "kvct") == []
    for kind in ("servicemonitor", "prometheusrule", "poddisruptionbudget", "networkpolicy", "deployment"):
        assert _names(kubectl, kind) == [OPERATOR]

    second = helm("upgrade", "kvtier", CHART, *at, *_values(EVERYTHING))
    assert "NOT installed" not in second
    assert _names(kubectl, "kvct") == ["llama", "qwen3-32b"]
    tier = kubectl.json("get", "kvct", "qwen3-32b", *at)["spec"]
    assert tier["engine"]["maxModelLen"] == 1048576
    assert tier["router"]["flavor"] == "gaie"

    helm("upgrade", "kvtier", CHART, *at, "--reset-values", "--set", "operator.logFormat=plain")
    assert _names(kubectl, "kvct") == []
    assert _names(kubectl, "networkpolicy") == []
    helm("rollback", "kvtier", "2", *at)
    assert _names(kubectl, "kvct") == ["llama", "qwen3-32b"]
    assert _names(kubectl, "networkpolicy") == [OPERATOR]

    kubectl("apply", *at, "--filename", "-", stdin=json.dumps(_by_hand()))
    helm("uninstall", "kvtier", *at, "--wait")
    assert _names(kubectl, "deployment") == []
    assert _names(kubectl, "clusterrole", OPERATOR) == []
    assert _names(kubectl, "kvct") == ["by-hand"], "crds.keep keeps the CRD and what no chart made"

    helm("install", "kvtier", CHART, *at)
    assert _names(kubectl, "kvct") == ["by-hand"], "a kept CRD is taken up again by its release"
    helm("upgrade", "kvtier", CHART, *at, "--set", "crds.keep=false")
    helm("uninstall", "kvtier", *at, "--wait")
    with pytest.raises(CommandError, match="NotFound"):
        kubectl("get", CRD)


def _by_hand() -> dict[str, Any]:
    return {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": {"name": "by-hand"},
        "spec": SPEC,
    }


def _values(path: Path | None) -> list[str | Path]:
    return ["--values", path] if path else []


def _names(kubectl: Command, kind: str, *names: str) -> list[str]:
    """Names of the objects in the operator's namespace that a chart or a person made."""
    listed = kubectl("get", kind, *names, "--namespace", SYSTEM, "--ignore-not-found", "--output", "name")
    return [line.rpartition("/")[2] for line in listed.splitlines()]


def _key(document: dict[str, Any]) -> tuple[str, str]:
    return document["kind"], document["metadata"]["name"]


def _without_chart(document: dict[str, Any]) -> dict[str, Any]:
    labels = document["metadata"]["labels"]
    document["metadata"]["labels"] = {key: labels[key] for key in labels if key not in OF_CHARTS}
    if document["kind"] == "Deployment":
        container = document["spec"]["template"]["spec"]["containers"][0]
        assert container.pop("imagePullPolicy") == "IfNotPresent", "what Kubernetes makes of a tag by itself"
    return document


def test_an_install_without_rights_beyond_its_namespaces(helm: Command) -> None:
    off = (
        *("crds.enabled", "admissionPolicy.enabled", "attach.enabled"),
        *("rbac.aggregate", "rbac.clusterReads"),
    )
    values = ",".join(("watchNamespaces={one}", *(f"{each}=false" for each in off)))
    at = ("--namespace", SYSTEM, "--skip-tests")
    apis = [f"--api-versions={POLICY_VERSIONS[0]}/MutatingAdmissionPolicy"]
    rendered = yaml.safe_load_all(helm("template", "kvtier", CHART, *at, *apis, "--set", values))
    kinds = {document["kind"] for document in rendered if document}
    assert kinds == {"Deployment", "Role", "RoleBinding", "Service", "ServiceAccount"}
