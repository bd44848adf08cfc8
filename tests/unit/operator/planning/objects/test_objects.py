"""Which objects there are, and that they fit together."""

import json
import re
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operator.planning.objects.built import Object, identity, objects, one, pages

from kvtier_operator.planning.router.engine_routes import passed_paths
from kvtier_operator.planning.router.route_order import claim_of

LABELS = {f"app.kubernetes.io/{key}" for key in ("name", "instance", "component", "part-of", "managed-by")}
PORT_NAME = re.compile(r"[a-z]([-a-z0-9]{0,13}[a-z0-9])?")
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
ALWAYS = {
    ("ServiceAccount", "engine"),
    ("ServiceAccount", "picker"),
    ("Role", "picker"),
    ("RoleBinding", "picker"),
    ("ConfigMap", "picker"),
    ("Service", "engine"),
    ("Service", "picker"),
    ("Deployment", "engine"),
    ("Deployment", "picker"),
    ("InferencePool", "router"),
}


def test_the_least_resource_makes_these_objects_and_no_other() -> None:
    assert {identity(document) for document in objects({})} == ALWAYS


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"spec.replicas": 2}, [("PodDisruptionBudget", "engine")]),
        ({"spec.backend": "LMCache"}, [("ConfigMap", "engine")]),
        ({"spec.router.gateway": {"parentRef": {"name": "g"}}}, [("HTTPRoute", "router")]),
        ({"spec.router.networkPolicy": {"enabled": True}}, [("NetworkPolicy", "picker")]),
        (
            {"spec.router.flavor": "builtin", "spec.router.kvEvents": True},
            [("NetworkPolicy", "engine")],
        ),
        (
            {"spec.router.gateway": {"parentRef": {"name": "g"}, "provider": "istio"}},
            [("HTTPRoute", "router"), ("DestinationRule", "picker"), ("NetworkPolicy", "picker")],
        ),
        (
            {"spec.router.gateway": {"parentRef": {"name": "g"}, "provider": "gke"}},
            [("HTTPRoute", "router"), ("HealthCheckPolicy", "router"), ("GCPBackendPolicy", "router")],
        ),
        (
            {
                "spec.router.flavor": "gaie",
                "spec.router.gateway": {"provider": "standalone", "standalone": {"replicas": 2}},
            },
            [
                *(
                    (kind, "gateway")
                    for kind in ("ConfigMap", "Service", "Deployment", "PodDisruptionBudget")
                ),
                ("NetworkPolicy", "picker"),
            ],
        ),
    ],
    ids=str,
)
def test_optional_objects(changes: dict[str, object], more: list[tuple[str, str]]) -> None:
    assert {identity(document) for document in objects(changes)} == ALWAYS | set(more)


def test_what_is_referred_to_comes_first() -> None:
    kinds = [document["kind"] for document in objects({"spec.router.gateway": {"parentRef": {"name": "g"}}})]
    assert kinds.index("ConfigMap") < kinds.index("Deployment") < kinds.index("InferencePool")
    assert kinds[:2] == ["ServiceAccount", "ServiceAccount"]
    assert kinds[-1] == "HTTPRoute"


@pytest.mark.parametrize(("strategy", "surplus"), [("InPlace", 0), ("Surge", 1)])
def test_engines_are_replaced_one_at_a_time(strategy: str, surplus: int) -> None:
    built = objects({"spec.replicas": 3, "spec.engine.rollout": {"strategy": strategy}})
    assert one(built, "Deployment", "engine")["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surplus, "maxUnavailable": 1 - surplus},
    }


def annotations(built: tuple[Object, ...], component: str) -> Object:
    template = one(built, "Deployment", component)["spec"]["template"]
    found: Object = template["metadata"].get("annotations", {})
    return found


def test_pods_follow_the_configuration_they_read() -> None:
    small, large = (
        objects({"spec.backend": "LMCache", "spec.tiers.cpu.capacity": capacity})
        for capacity in ("100Gi", "200Gi")
    )
    for component in ("engine", "picker"):
        assert annotations(small, component) != annotations(large, component)
    more = objects({"spec.backend": "LMCache", "spec.replicas": 5})
    assert annotations(more, "engine") == annotations(small, "engine")
    assert annotations(more, "picker") == annotations(small, "picker")


def test_scaling_the_engines_leaves_the_picker_alone() -> None:
    def picker(replicas: int) -> Object:
        return one(objects({"spec.router.flavor": "gaie", "spec.replicas": replicas}), "Deployment", "picker")

    assert picker(0) == picker(1) == picker(8)
    assert picker(8) != picker(9) == picker(16)


def test_the_route_leads_to_the_pool() -> None:
    gateway = {
        "parentRef": {"name": "g", "namespace": "gateways", "sectionName": "https"},
        "hostnames": ["llm.example.com"],
    }
    route = one(objects({"spec.router.gateway": gateway}), "HTTPRoute", "router")["spec"]
    assert route["parentRefs"] == [
        {
            "group": "gateway.networking.k8s.io",
            "kind": "Gateway",
            "name": "g",
            "namespace": "gateways",
            "sectionName": "https",
        }
    ]
    assert route["hostnames"] == ["llm.example.com"]
    for rule in route["rules"]:
        assert rule["backendRefs"][0]["name"] == "qwen3-32b"
        assert rule["timeouts"] == {"request": "0s"}
    gke = {"parentRef": {"name": "g"}, "provider": "gke"}
    route = one(objects({"spec.router.gateway": gke}), "HTTPRoute", "router")["spec"]
    assert not any("timeouts" in rule for rule in route["rules"])


MANY: Final = [f"/extra/{number}" for number in range(16)]


@pytest.mark.parametrize("provider", ["none", "istio", "gke", "kgateway", "agentgateway"])
@pytest.mark.parametrize("own_path", ["", "/default/qwen3-32b"])
@pytest.mark.parametrize("extra", [[], ["/metrics"], MANY, ["/metrics", "/"]], ids=len)
def test_routes_pass_what_was_asked_for_within_gateway_apis_limits(
    provider: str, own_path: str, extra: list[str]
) -> None:
    gateway = {"parentRef": {"name": "g"}, "provider": provider, "extraPaths": extra}
    built = objects({"spec.router.gateway": gateway | {"ownPath": bool(own_path)}})
    routes = [document for document in built if document["kind"] == "HTTPRoute"]
    passed = []
    for rules in (route["spec"]["rules"] for route in routes):
        assert len(rules) <= 16
        for rule in rules:
            paths = [match["path"]["value"] for match in rule["matches"]]
            passed += [path.removeprefix(own_path) or "/" for path in paths]
            assert len(paths) <= (1 if own_path else 8)
            rewritten = [each["urlRewrite"]["path"]["replacePrefixMatch"] for each in rule["filters"]]
            assert rewritten == (passed[-1:] if own_path else [])
    restricts = not (own_path and provider == "gke")
    assert passed == [*passed_paths(extra if restricts else ["/"])]
    # what the operator looks at is the route with the resource's name
    first = claim_of(routes[0], ours=True)
    assert first
    assert first.path == own_path + ("/v1/chat/completions" if len(passed) > 1 else "") or "/"
    assert [route["metadata"]["name"] for route in routes] == [
        *("qwen3-32b", "qwen3-32b-paths-2", "qwen3-32b-paths-3")[: len(routes)]
    ]


VOLUMES = st.sampled_from(
    [
        {"emptyDir": {}},
        {"ephemeral": {"storageClassName": "nvme"}},
        {"persistentVolumeClaim": {"claimName": "claim"}},
        {"hostPath": {"path": "/mnt/nvme"}},
    ]
)
CHANGES: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {
        "metadata.name": st.from_regex(r"[a-z]([-a-z0-9]{0,45}[a-z0-9])?", fullmatch=True),
        "metadata.namespace": st.sampled_from(["default", "serving"]),
        "spec.backend": st.sampled_from(["KVTier", "Native", "LMCache", "LMCacheMP"]),
        "spec.replicas": st.integers(0, 5),
        "spec.engine.tensorParallelSize": st.sampled_from([1, 2, 8]),
        "spec.engine.dataParallelSize": st.sampled_from([1, 2]),
        "spec.engine.device": st.sampled_from(["gpu", "cpu"]),
        "spec.engine.port": st.sampled_from([8000, 5555]),
        "spec.tiers.cpu.capacity": st.sampled_from(["1Gi", "100Gi", "333333333333"]),
        "spec.tiers.cpu.hugepages": st.sampled_from([{}, {"policy": "Require"}, {"policy": "Prefer"}]),
        "spec.tiers.cpu.memlock": st.sampled_from([{}, {"policy": "Require"}]),
        "spec.router": st.sampled_from(
            [
                {"flavor": "llm-d"},
                {"flavor": "gaie", "replicas": 2},
                {"flavor": "builtin", "failureMode": "FailClose"},
            ]
        ),
    },
    optional={
        "spec.tiers.disk": st.fixed_dictionaries({"capacity": st.just("1Ti"), "volume": VOLUMES}),
        "spec.observability": st.fixed_dictionaries(
            {name: st.booleans() for name in ("serviceMonitor", "dashboard", "prometheusRule")}
        ),
        "spec.router.gateway": st.builds(
            lambda provider: {"parentRef": {"name": "gateway"}, "provider": provider},
            st.sampled_from(["none", "istio", "gke", "kgateway", "agentgateway"]),
        ),
    },
)


@given(changes=CHANGES)
def test_whatever_is_asked_the_objects_fit_together(changes: dict[str, object]) -> None:
    built = objects(changes)
    assert json.dumps(built) == json.dumps(objects(changes))
    identities = [(document["kind"], document["metadata"]["name"]) for document in built]
    assert len(identities) == len(set(identities))
    for document in built:
        metadata = document["metadata"]
        assert metadata["namespace"] == changes["metadata.namespace"]
        assert set(metadata["labels"]) >= LABELS
        assert DNS_LABEL.fullmatch(metadata["name"])
    for deployment in (document for document in built if document["kind"] == "Deployment"):
        check_deployment(deployment, built)


def check_deployment(deployment: Object, built: tuple[Object, ...]) -> None:
    template = deployment["spec"]["template"]
    labels, spec = template["metadata"]["labels"], template["spec"]
    selectors = [deployment["spec"]["selector"]["matchLabels"], *selectors_of(deployment, built)]
    for selector in selectors:
        assert selector.items() <= labels.items()
    volumes = [volume["name"] for volume in spec["volumes"]]
    assert len(volumes) == len(set(volumes))
    accounts = {document["metadata"]["name"] for document in built if document["kind"] == "ServiceAccount"}
    maps = {
        document["metadata"]["name"]: document["data"]
        for document in built
        if document["kind"] == "ConfigMap"
    }
    assert spec["serviceAccountName"] in accounts
    assert {volume["configMap"]["name"] for volume in spec["volumes"] if "configMap" in volume} <= set(maps)
    ports = [port for container in containers(spec) for port in container.get("ports", ())]
    assert len({port["containerPort"] for port in ports}) == len(ports)
    for container in containers(spec):
        names = [variable["name"] for variable in container.get("env", ())]
        assert len(names) == len(set(names))
        assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)
        paths = [mount["mountPath"] for mount in container["volumeMounts"]]
        assert len(paths) == len(set(paths))
        assert all(PORT_NAME.fullmatch(port["name"]) for port in container.get("ports", ()))
        assert pages(container["resources"]["requests"]) == pages(container["resources"]["limits"])


def containers(spec: Object) -> Iterator[Object]:
    yield from spec.get("initContainers", [])
    yield from spec["containers"]


def selectors_of(deployment: Object, built: tuple[Object, ...]) -> Iterator[Object]:
    component = identity(deployment)[1]
    for document in built:
        if document["kind"] == "Service" and identity(document)[1] == component:
            yield document["spec"]["selector"]
        if document["kind"] in {"InferencePool", "PodDisruptionBudget"} and component == "engine":
            yield document["spec"]["selector"]["matchLabels"]
