"""What the engine's pod must find, and how the container that looks is made."""

from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.cluster.pod_needs import pod_requests
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.objects.engine.deployment import engine_deployment
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.pod.demands import (
    Demands,
    HugepagesDemand,
    MemlockDemand,
    RemoteDemand,
    VolumeDemand,
)

MIB, GIB, TIB = 1 << 20, 1 << 30, 1 << 40
DISK = {"capacity": "1Ti", "volume": {"hostPath": {"path": "/mnt/nvme"}}}
STORE = {
    "url": "rediss://kv.example:6379",
    "capacity": "1Ti",
    "credentials": {"secretRef": {"name": "valkey"}},
    "tls": {"caSecretRef": {"name": "valkey-ca"}},
    "shareAs": "team/model",
}


def plan(cpu: dict[str, Any] | None = None, observed: Observed | None = None, **spec: Any) -> Plan:  # noqa: ANN401 - as in YAML
    tiers = {"cpu": {"capacity": "10Gi", **(cpu or {})}, **spec.pop("tiers", {})}
    return make_plan(resource(tiers=tiers, **spec), observed or Observed())


def demands(cpu: dict[str, Any] | None = None, **spec: Any) -> Demands:  # noqa: ANN401 - as in YAML
    return plan(cpu, **spec).doctor.demands


def pod(one: Plan) -> dict[str, Any]:
    found: dict[str, Any] = engine_deployment(one)["spec"]["template"]["spec"]
    return found


def test_memory_and_shared_memory_are_the_budget_s() -> None:
    one = plan(backend="Native")
    assert one.doctor.demands.shm_bytes == one.budget.shm_bytes == 11 * GIB
    assert one.doctor.demands.memory_bytes == sum(line.bytes for line in one.budget.memory)


@pytest.mark.parametrize(
    ("policy", "backend", "expected"),
    [
        ("Require", "KVTier", HugepagesDemand(2 * MIB, 5120, required=True)),
        ("Prefer", "KVTier", HugepagesDemand(2 * MIB, 5120, required=False)),
        ("Require", "LMCacheMP", HugepagesDemand(2 * MIB, 5120, required=True)),
        ("Prefer", "LMCache", None),  # it uses none then
        ("Never", "KVTier", None),
    ],
)
def test_huge_pages(policy: str, backend: str, expected: HugepagesDemand | None) -> None:
    assert demands({"hugepages": {"policy": policy}}, backend=backend).hugepages == expected


@pytest.mark.parametrize(
    ("cpu", "backend", "expected"),
    [
        ({"memlock": {"policy": "Require"}}, "KVTier", MemlockDemand(10 * GIB, required=True)),
        ({}, "KVTier", None),  # it takes what there is
        (
            {"memlock": {"policy": "Require"}, "hugepages": {"policy": "Require"}},
            "KVTier",
            MemlockDemand(0, required=True),
        ),
        ({"memlock": {"policy": "Never"}}, "KVTier", None),
        ({"memlock": {"policy": "Require"}}, "Native", None),  # it locks nothing itself
    ],
)
def test_locked_memory(cpu: dict[str, Any], backend: str, expected: MemlockDemand | None) -> None:
    assert demands(cpu, backend=backend).memlock == expected


@pytest.mark.parametrize(("backend", "direct"), [("KVTier", True), ("LMCacheMP", True), ("Native", False)])
def test_volumes(backend: str, *, direct: bool) -> None:
    path = "/var/lib/kvtier/disk/0"
    assert demands(backend=backend, tiers={"disk": DISK}).volumes == (VolumeDemand(path, TIB, direct),)
    off = {"disk": DISK | {"directIO": False}}
    assert not demands(backend=backend, tiers=off).volumes[0].direct_io


def test_a_store_is_examined_as_the_engine_reaches_it() -> None:
    one = plan(tiers={"remote": STORE})
    folder = "/etc/kvtier/remote"
    assert one.doctor.demands.remote == RemoteDemand(
        managed=False,
        url="rediss://kv.example:6379",
        share="team/model",
        capacity_bytes=TIB,
        credentials_path=f"{folder}/credentials",
        ca_path=f"{folder}/ca/ca.crt",
    )
    [_, doctor], [engine] = pod(one)["initContainers"], pod(one)["containers"]
    secrets = [mount for mount in engine["volumeMounts"] if mount["mountPath"].startswith(folder)]
    assert [mount["name"] for mount in secrets] == ["remote-credentials", "remote-ca"]
    assert doctor["volumeMounts"][1:] == secrets


def test_other_clients_stores_are_left_alone() -> None:
    bare = {"url": "redis://kv.example:6379", "capacity": "1Ti"}
    one = plan(backend="LMCache", tiers={"remote": bare})
    assert one.doctor.demands.remote is None
    assert "remote" not in one.doctor.demands.to_json()


def test_demands_travel_as_one_line() -> None:
    cpu = {"memlock": {"policy": "Require"}, "hugepages": {"policy": "Require"}}
    for one in (
        demands(cpu),
        demands(),
        demands(backend="LMCache", tiers={"disk": DISK}),
        demands(tiers={"remote": STORE}),
    ):
        assert "\n" not in one.to_json()
        assert Demands.from_json(one.to_json()) == one


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"memory_bytes": 1}', '{"hugepages": {"a": 1}}'])
def test_demands_of_another_hand(text: str) -> None:
    with pytest.raises(ValueError, match="not the demands"):
        Demands.from_json(text)


def test_the_container_has_the_engine_s_bounds_security_and_volumes() -> None:
    cpu = {"hugepages": {"policy": "Require"}, "memlock": {"policy": "Require"}}
    one = plan(cpu, engine={"resources": {"requests": {"cpu": 8, "ephemeral-storage": "1Gi"}}})
    [_, doctor], [engine] = pod(one)["initContainers"], pod(one)["containers"]
    assert doctor["command"] == ["kvtier", "doctor", "--in-pod"]
    assert doctor["securityContext"] == engine["securityContext"]
    limits = {"hugepages-2Mi": "10Gi", "memory": engine["resources"]["limits"]["memory"]}
    assert doctor["resources"] == {"limits": limits, "requests": {"cpu": "8", **limits}}
    assert doctor["volumeMounts"] == [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108 - a mount
    assert doctor["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert "restartPolicy" not in doctor
    environment = {each["name"]: each.get("value") for each in doctor["env"]}
    assert Demands.from_json(environment["KVTIER_DEMANDS"] or "") == one.doctor.demands
    with_disk = pod(plan(backend="LMCache", tiers={"disk": DISK}))
    mounts = [
        {mount["name"]: mount for mount in with_disk[kind][0]["volumeMounts"]}
        for kind in ("initContainers", "containers")
    ]
    assert mounts[0]["kv-disk-0"] == mounts[1]["kv-disk-0"]


def test_it_comes_before_a_server_whose_pages_it_tries_and_costs_the_pod_nothing() -> None:
    one = pod(plan({"hugepages": {"policy": "Require"}}, backend="LMCacheMP"))
    assert [container["name"] for container in one["initContainers"]] == ["doctor", "lmcache"]
    without = one | {"initContainers": one["initContainers"][1:]}
    assert pod_requests(one) == pod_requests(without)


def test_the_image_is_the_published_one_or_the_mirror_s() -> None:
    assert plan().doctor.image.startswith("registry.invalid/kvtier/operator:")
    mirror = Observed(images=ImageSource(repository="registry.example/kvtier"))
    assert plan(observed=mirror).doctor.image.startswith("registry.example/kvtier:")
