"""The picker's own objects: how it runs, what it may read, and how it is replaced."""

from collections.abc import Mapping

import pytest
from tests.unit.operator.planning.objects.built import Object, objects, one, pod

from kvtier_operator.api.spec.router import GatewayProvider


def test_a_picker_goes_when_the_next_one_is_ready() -> None:
    """But for one that waits to be the leader, and is not ready before the others are gone."""

    def bounds(changes: Mapping[str, object]) -> Object:
        found: Object = one(objects(changes), "Deployment", "picker")["spec"]["strategy"]["rollingUpdate"]
        return found

    for flavor in ("llm-d", "gaie", "builtin"):
        assert bounds({"spec.router.flavor": flavor}) == {"maxSurge": 1, "maxUnavailable": 0}
    for flavor in ("llm-d", "gaie"):
        several = {"spec.router.flavor": flavor, "spec.router.replicas": 2}
        assert bounds(several) == {"maxSurge": "100%", "maxUnavailable": "100%"}


def rules(changes: Mapping[str, object]) -> set[tuple[str, str]]:
    role = one(objects(changes), "Role", "picker")
    return {
        (group, name) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]
    }


def test_the_picker_may_read_what_it_picks_from_and_nothing_else() -> None:
    pods = {("", "pods"), ("inference.networking.k8s.io", "inferencepools")}
    assert rules({"spec.router.flavor": "builtin"}) == pods
    upstream = {
        ("inference.networking.x-k8s.io", "inferenceobjectives"),
        ("inference.networking.x-k8s.io", "inferencemodelrewrites"),
    }
    assert rules({"spec.router.flavor": "gaie"}) == pods | upstream
    own = {("llm-d.ai", "inferenceobjectives"), ("llm-d.ai", "inferencemodelrewrites")}
    assert rules({}) == pods | upstream | own
    leader = {("coordination.k8s.io", "leases"), ("", "events")}
    assert rules({"spec.router.replicas": 2}) == rules({}) | leader
    for rule in one(objects({}), "Role", "picker")["rules"]:
        assert rule["verbs"] == ["get", "list", "watch"]


def test_the_picker_meets_the_restricted_standard() -> None:
    picker = pod({}, "picker")
    assert picker["securityContext"]["runAsNonRoot"] is True
    assert picker["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    [container] = picker["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def picker_args(changes: Mapping[str, object]) -> list[str]:
    args: list[str] = pod(changes, "picker")["containers"][0]["args"]
    return args


def test_picker_arguments() -> None:
    args = picker_args({"metadata.namespace": "serving"})
    assert args[:4] == ["--pool-name", "qwen3-32b", "--pool-namespace", "serving"]
    assert "--ha-enable-leader-election" not in args
    assert "--ha-enable-leader-election" in picker_args({"spec.router.replicas": 2})


@pytest.mark.parametrize("flavor", ["llm-d", "gaie"])
def test_profiles_are_not_served(flavor: str) -> None:
    """Known to llm-d-router 0.9 and 0.10, and to the inference extension from 1.2: a flag with a value."""
    assert "--enable-pprof=false" in picker_args({"spec.router.flavor": flavor})


def test_kvtiers_own_picker_gets_only_arguments_that_it_knows() -> None:
    args = picker_args({"spec.router.flavor": "builtin"})
    flags = [arg.partition("=")[0] for arg in args if arg.startswith("--")]
    assert flags == [
        *("--pool-name", "--pool-namespace", "--pool-group", "--config-file"),
        *("--grpc-port", "--grpc-health-port", "--metrics-port", "--grace-period"),
    ]


def probed(changes: Mapping[str, object]) -> dict[str, str]:
    [container] = pod(changes, "picker")["containers"]
    return {name: probe["grpc"]["service"] for name, probe in container.items() if name.endswith("Probe")}


def test_pickers_are_asked_for_their_health_by_the_names_they_have_for_it() -> None:
    assert probed({}) == {"livenessProbe": "inference-extension", "readinessProbe": "inference-extension"}
    elected = {"livenessProbe": "liveness", "readinessProbe": "readiness"}
    assert probed({"spec.router.replicas": 2}) == elected
    assert probed({"spec.router.flavor": "builtin"}) == {"startupProbe": "liveness", **elected}


def test_kvtiers_own_picker_may_write_to_scratch_and_nowhere_else() -> None:
    picker = pod({"spec.router.flavor": "builtin"}, "picker")
    [container] = picker["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    writable = {
        mount["name"]: mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")
    }
    assert writable == {"scratch": "/tmp"}  # noqa: S108 - a mount
    assert {"name": "scratch", "emptyDir": {"sizeLimit": "64Mi"}} in picker["volumes"]


def test_the_pickers_memory_holds_the_index_of_every_engine() -> None:
    def memory(flavor: str) -> str:
        changes = {"spec.router.flavor": flavor, "spec.engine.kvCacheMemory": "20Gi", "spec.replicas": 4}
        found: str = pod(changes, "picker")["containers"][0]["resources"]["requests"]["memory"]
        return found

    # (81,920 + 409,600) tokens / 16 = 30,720 entries x 8 pods: 32 B each are 7.5 MiB, 1,280 B each 300
    assert memory("builtin") == "576Mi"
    assert memory("gaie") == "832Mi"


@pytest.mark.parametrize("provider", GatewayProvider)
def test_the_picker_serves_tls_to_every_gateway(provider: GatewayProvider) -> None:
    named = {} if provider is GatewayProvider.STANDALONE else {"parentRef": {"name": "g"}}
    args = picker_args({"spec.router.gateway": {**named, "provider": provider.value}})
    assert not [arg for arg in args if arg.startswith("--secure-serving")]
