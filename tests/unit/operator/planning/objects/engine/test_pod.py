"""The engine's pod: its pages, its rights, its time and its volumes."""

import pytest
from tests.unit.operator.planning.objects.built import Object, engine_container, pages, plan_for, pod


def test_explicit_pages_are_requested_as_limited_and_only_with_memory() -> None:
    resources = engine_container({"spec.tiers.cpu.hugepages": {"policy": "Require"}})["resources"]
    assert resources["requests"]["hugepages-2Mi"] == resources["limits"]["hugepages-2Mi"] == "100Gi"
    assert resources["requests"]["memory"] == resources["limits"]["memory"]


def test_a_server_s_pages_are_not_the_engine_s() -> None:
    changes = {"spec.backend": "LMCacheMP", "spec.tiers.cpu.hugepages": {"policy": "Require"}}
    doctor, server = pod(changes)["initContainers"]
    assert doctor["name"] == "doctor"
    assert pages(doctor["resources"]["limits"]) == {
        "hugepages-2Mi": "100Gi"
    }  # those that the server will map
    assert server["resources"]["limits"] == {"hugepages-2Mi": "100Gi", "memory": "5Gi"}
    assert server["resources"]["requests"] == server["resources"]["limits"]
    assert server["restartPolicy"] == "Always"
    engine = engine_container(changes)["resources"]
    assert pages(engine["limits"]) == pages(engine["requests"]) == {}


def test_shared_memory_has_a_bound() -> None:
    [shm] = [volume for volume in pod({"spec.backend": "Native"})["volumes"] if volume["name"] == "shm"]
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": "101Gi"}


@pytest.mark.parametrize(
    ("changes", "root"),
    [
        ({}, False),
        ({"spec.tiers.cpu.memlock": {"policy": "Prefer"}}, False),
        ({"spec.tiers.cpu.memlock": {"policy": "Prefer"}, "spec.engine.device": "cpu"}, False),
        ({"spec.tiers.cpu.memlock": {"policy": "Never"}}, False),
        ({"spec.tiers.cpu.memlock": {"policy": "Require"}}, True),
        ({"spec.tiers.cpu.memlock": {"policy": "Require"}, "spec.backend": "Native"}, True),
        (
            {
                "spec.backend": "Native",
                "spec.tiers.disk": {"capacity": "1Ti", "volume": {"hostPath": {"path": "/d"}}},
            },
            True,
        ),
        (
            {
                "spec.backend": "Native",
                "spec.tiers.disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}},
            },
            False,
        ),
    ],
    ids=str,
)
def test_root_only_where_nothing_else_works(changes: dict[str, object], *, root: bool) -> None:
    security = pod(changes)["securityContext"]
    assert (security.get("runAsUser") == 0) is root
    assert security.get("runAsNonRoot", False) is not root


def test_locking_memory_is_the_only_capability_there_is() -> None:
    locking = engine_container({"spec.tiers.cpu.memlock": {"policy": "Require"}})
    assert locking["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK"]}
    for policy in ("Prefer", "Never"):
        without = engine_container({"spec.tiers.cpu.memlock": {"policy": policy}})
        assert without["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("device", ["gpu", "cpu"])
@pytest.mark.parametrize("backend", ["KVTier", "LMCache", "LMCacheMP", "Native"])
def test_pod_security_restricted_takes_a_resource_that_says_nothing_of_rights(
    device: str, backend: str
) -> None:
    """The profile's fields that kvtier sets (Kubernetes, Pod Security Standards)."""
    built = pod({"spec.engine.device": device, "spec.backend": backend})
    assert built["securityContext"]["runAsNonRoot"] is True
    assert built["securityContext"]["runAsUser"] == 1000
    assert built["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*built["initContainers"], *built["containers"]):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }


def test_time_to_start_and_to_stop() -> None:
    plan = plan_for({})
    container = engine_container({})
    startup = container["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= plan.budget.startup_s
    assert pod({})["terminationGracePeriodSeconds"] == 140
    assert container["lifecycle"]["preStop"] == {"sleep": {"seconds": 10}}
    assert container["args"][-2:] == ["--shutdown-timeout", "120"]


def test_the_pods_grace_follows_the_drain() -> None:
    drain = {"spec.engine.drainSeconds": 300}
    assert pod(drain)["terminationGracePeriodSeconds"] == 320
    assert engine_container(drain)["args"][-2:] == ["--shutdown-timeout", "300"]


def test_volumes_that_pods_share_are_divided_for_lmcache() -> None:
    disk = {"capacity": "1Ti", "volume": {"persistentVolumeClaim": {"claimName": "c"}}}

    def mount(backend: str) -> Object:
        mounts = engine_container({"spec.backend": backend, "spec.tiers.disk": disk})["volumeMounts"]
        [found] = [mount for mount in mounts if mount["name"] == "kv-disk-0"]
        return dict(found)

    assert mount("LMCache")["subPathExpr"] == mount("LMCacheMP")["subPathExpr"] == "$(POD_NAME)"
    assert "subPathExpr" not in mount("Native")


@pytest.mark.parametrize(
    ("volume", "shared"),
    [
        ({"persistentVolumeClaim": {"claimName": "c"}}, True),
        ({"hostPath": {"path": "/mnt"}}, True),
        ({"emptyDir": {}}, False),
        ({"ephemeral": {}}, False),
    ],
    ids=str,
)
def test_kvtier_finds_its_folder_again_and_leaves_others_theirs(volume: Object, *, shared: bool) -> None:
    changes = {"spec.tiers.disk": {"capacity": "1Ti", "volume": volume}}
    engine, other = (
        engine_container(changes | {"metadata": {"name": name, "namespace": "llm"}}) for name in ("a", "b")
    )
    [found] = [mount for mount in engine["volumeMounts"] if mount["name"] == "kv-disk-0"]
    assert found.get("subPath") == ("llm/a" if shared else None)
    assert (other["volumeMounts"] == engine["volumeMounts"]) is not shared


def test_lmcache_empties_its_folders_before_it_starts() -> None:
    disk = {"capacity": "1Ti", "volume": {"emptyDir": {}}}
    command = engine_container({"spec.backend": "LMCache", "spec.tiers.disk": disk})["command"]
    assert command[:2] == ["/bin/sh", "-c"]
    assert command[2] == 'rm -rf -- /var/lib/kvtier/disk/0/lmcache/rank-0 && exec vllm serve "$@"'
    assert engine_container({"spec.backend": "LMCache"})["command"] == ["vllm", "serve"]
