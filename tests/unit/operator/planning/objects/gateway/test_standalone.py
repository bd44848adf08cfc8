"""kvtier's own gateway: what is made of it, and what the picker behind it needs no more."""

import json
from typing import Any

import pytest
from tests.unit.operator.planning.objects.built import Object, objects, one, plan_for, pod

EXTENSION = "inference.networking"


def changes(flavor: str = "llm-d", **standalone: Any) -> dict[str, object]:  # noqa: ANN401 - of the YAML
    gateway: dict[str, object] = {"provider": "standalone"}
    if standalone:
        gateway["standalone"] = standalone
    return {"spec.router.flavor": flavor, "spec.router.gateway": gateway, "metadata.namespace": "serving"}


def bootstrap_of(changed: dict[str, object]) -> Any:  # noqa: ANN401 - JSON
    return json.loads(one(objects(changed), "ConfigMap", "gateway")["data"]["envoy.json"])


def container(changed: dict[str, object]) -> Object:
    [found] = pod(changed, "gateway")["containers"]
    return dict(found)


@pytest.mark.parametrize("flavor", ["llm-d", "builtin"])
def test_nothing_of_gateway_api_or_its_extension_is_needed(flavor: str) -> None:
    built = objects(changes(flavor))
    assert {document["apiVersion"] for document in built} <= {
        *("v1", "apps/v1", "policy/v1", "networking.k8s.io/v1", "rbac.authorization.k8s.io/v1")
    }
    args = pod(changes(flavor), "picker")["containers"][0]["args"]
    assert args[:6] == [
        "--endpoint-selector",
        "app.kubernetes.io/component=engine,app.kubernetes.io/instance=qwen3-32b,app.kubernetes.io/name=kvtier",
        *("--endpoint-target-ports", "8000", "--pool-namespace", "serving"),
    ]
    [rule] = one(built, "Role", "picker")["rules"]
    assert rule["resources"] == ["pods"]
    labels = one(built, "Deployment", "engine")["spec"]["template"]["metadata"]["labels"]
    assert dict(word.split("=") for word in args[1].split(",")).items() <= labels.items()


def test_gaies_picker_still_needs_its_pool() -> None:
    built = objects(changes("gaie"))
    assert [document["kind"] for document in built if EXTENSION in document["apiVersion"]] == [
        "InferencePool"
    ]
    assert pod(changes("gaie"), "picker")["containers"][0]["args"][0] == "--pool-name"


def test_one_url_in_the_clear_or_with_a_certificate() -> None:
    plain, secret = changes(), changes(tlsSecretName="tls")
    for changed, port, url in (
        (plain, ("http", 80), "http://qwen3-32b-gateway.serving.svc/v1"),
        (secret, ("https", 443), "https://qwen3-32b-gateway.serving.svc/v1"),
    ):
        service = one(objects(changed), "Service", "gateway")
        [found] = service["spec"]["ports"]
        assert service["metadata"]["name"] == "qwen3-32b-gateway"
        assert (found["name"], found["port"]) == port
        assert found["targetPort"] in {port["name"] for port in container(changed)["ports"]}
        gateway = plan_for(changed).router.gateway
        assert gateway
        assert gateway.url == url
        assert container(changed)["readinessProbe"]["httpGet"]["scheme"] == port[0].upper()


def test_a_missing_secret_keeps_the_container_from_starting_and_is_told() -> None:
    """The kubelet names it in the pod's status for the variable; for the volume it would wait in silence."""
    gateway = pod(changes(tlsSecretName="tls"), "gateway")
    [variable] = gateway["containers"][0]["env"]
    assert variable["valueFrom"]["secretKeyRef"] == {"name": "tls", "key": "tls.crt"}
    [secret] = [volume["secret"] for volume in gateway["volumes"] if "secret" in volume]
    assert (secret["secretName"], secret["optional"]) == ("tls", True)
    assert not container(changes())["env"]


def test_it_meets_the_restricted_standard() -> None:
    gateway = pod(changes(), "gateway")
    assert gateway["securityContext"]["runAsNonRoot"] is True
    assert gateway["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert gateway["automountServiceAccountToken"] is False
    assert container(changes())["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def test_what_is_under_way_ends_before_it_does() -> None:
    gateway = pod({**changes(), "spec.engine.drainSeconds": 50}, "gateway")
    assert gateway["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"] == 60
    assert gateway["terminationGracePeriodSeconds"] == 70


def test_memory_is_given_back_before_the_kernel_takes_it() -> None:
    resources = {"limits": {"memory": "100Mi"}}
    [heap, _] = bootstrap_of(changes(resources=resources))["overload_manager"]["resource_monitors"]
    assert heap["typed_config"]["max_heap_size_bytes"] == 90 * 2**20
    assert container(changes(resources=resources))["resources"] == {
        "requests": {"cpu": "500m", "memory": "100Mi"},
        "limits": {"memory": "100Mi"},
    }


@pytest.mark.parametrize(
    ("flavor", "mode"),
    [("builtin", "BUFFERED"), ("llm-d", "FULL_DUPLEX_STREAMED"), ("gaie", "FULL_DUPLEX_STREAMED")],
)
def test_each_picker_gets_bodies_as_it_reads_them(flavor: str, mode: str) -> None:
    [listener] = bootstrap_of(changes(flavor))["static_resources"]["listeners"]
    [manager] = [each["typed_config"] for each in listener["filter_chains"][0]["filters"]]
    [asked] = [each for each in manager["http_filters"] if each["name"] == "envoy.filters.http.ext_proc"]
    assert asked["typed_config"]["processing_mode"]["request_body_mode"] == mode


def test_upstream_s_pickers_get_no_message_above_4_mib() -> None:
    """What grpc-go takes unless told otherwise; the largest body that kvtier's own takes comes as one."""
    others = [{"name": "small", "resource": "small"}]

    def held_bytes(changed: dict[str, object]) -> int:
        [listener] = bootstrap_of(changed)["static_resources"]["listeners"]
        [manager] = [each["typed_config"] for each in listener["filter_chains"][0]["filters"]]
        [host] = manager["route_config"]["virtual_hosts"]
        return int(host["request_body_buffer_limit"])

    for flavor in ("llm-d", "gaie"):
        assert held_bytes(changes(flavor)) == held_bytes(changes(flavor, models=others)) == 2**20
    assert held_bytes(changes("builtin", models=others)) == 2**23
    assert held_bytes({**changes("builtin"), "spec.router.maxBodySize": "128Mi"}) == 2**27


def test_all_who_count_bodies_keep_to_the_memory_that_envoy_has() -> None:
    small = {"models": [{"name": "small", "resource": "small"}], "resources": {"limits": {"memory": "300Mi"}}}
    rendered = objects(changes("builtin", **small))
    [router] = one(rendered, "Deployment", "gateway")["spec"]["template"]["spec"]["initContainers"]
    counted_bytes = int(router["args"][router["args"].index("--total-body-bytes") + 1])
    assert f"uploadBytes: {counted_bytes}" in one(rendered, "ConfigMap", "picker")["data"]["picker.yaml"]
    # 90 % of the limit are the heap, and Envoy itself takes 64 MiB of it
    assert 3 * counted_bytes <= (300 * 0.9 - 64) * 2**20 < 4 * counted_bytes


def test_it_is_replaced_when_its_configuration_changes_and_not_with_the_pickers() -> None:
    def hash_of(changed: dict[str, object]) -> str:
        template = one(objects(changed), "Deployment", "gateway")["spec"]["template"]
        return str(template["metadata"]["annotations"]["kvtier.dev/config-hash"])

    first = hash_of(changes())
    assert hash_of({**changes(), "spec.router.weights": {"queue": 1}}) == first
    assert hash_of({**changes(), "spec.replicas": 7}) == first
    assert hash_of({**changes(), "spec.router.failureMode": "FailClose"}) != first


def test_an_image_of_ones_own() -> None:
    assert container(changes(image="mirror/envoy:1"))["image"] == "mirror/envoy:1"
    assert container(changes())["image"].startswith("envoyproxy/envoy:distroless-v")


def test_a_key_ends_at_the_gateway_unless_the_engine_asks_for_one() -> None:
    keys = changes(apiKeys={"secretName": "llm-keys"})

    def passes_on(**engine: object) -> bool:
        [reader] = pod(
            {**keys, **{f"spec.engine.{name}": value for name, value in engine.items()}}, "gateway"
        )["initContainers"]
        return "--pass-on" in reader["args"]

    assert not passes_on()
    assert passes_on(extraArgs=["--api-key", "$(KEY)"])
    assert passes_on(env=[{"name": "VLLM_API_KEY", "valueFrom": {"secretKeyRef": {"name": "k", "key": "k"}}}])
