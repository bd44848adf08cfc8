"""Pods that others own, under the running operator and with the policy, from the first look to Ready."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from tests.cluster.attach.place import attached_to, installed_policy
from tests.cluster.attach.shapes import CONTAINER, LABELS, memory, pod
from tests.cluster.harness.operator.operator import Operator
from tests.cluster.harness.providers.provider import Cluster
from tests.cluster.harness.stand_ins.http_server import engine_that_says
from tests.cluster.operator.world import World, condition, resource
from tests.shared.waiting import eventually

from kvtier_connector.payload import INIT_NAME
from kvtier_operator.planning.base.names import ATTACH_OPT_IN

Document = dict[str, Any]
_HASH: Final = "6c4b"
_ATTACH: Final = {"podSelector": {"matchLabels": LABELS}, "container": CONTAINER}
_INFO: Final = 'kvtier_attach_info{{reason="{}"}} 1.0\n'
_SIZES: Final = f"""\
vllm:cache_config_info{{block_size="16",engine="0",kv_cache_size_tokens="1600"}} 1.0
vllm:kvtier_cpu_capacity_tokens{{engine="0"}} 4096.0
vllm:kvtier_cpu_capacity_bytes{{engine="0"}} {100 << 30}.0
"""
_RESTART: Final = "kubectl rollout restart -n {} deployment/chat"


@pytest.fixture(scope="module")
def policed(server: Cluster) -> Iterator[None]:
    with server.client() as api, installed_policy(api):
        yield


@pytest.fixture
def team(world: World, policed: None) -> World:
    """A namespace that opted in, where pods can be made."""
    del policed
    world.core.patch_namespace(world.namespace, {"metadata": {"labels": ATTACH_OPT_IN}})
    world.core.create_namespaced_service_account(world.namespace, {"metadata": {"name": "default"}})
    return world


def _start(team: World, name: str, *, attached: bool, port: int = 8000) -> None:
    """A pod of the Deployment `chat`, as its ReplicaSet makes it, once the policy would have it so."""
    eventually(
        lambda: bool(attached_to(_create(team, name, dry_run="All"))) == attached, f"attached: {attached}"
    )
    assert attached_to(_create(team, name, port)) == ("qwen" if attached else "")


def _create(team: World, name: str, port: int = 8000, **options: str) -> Document:
    ports = [{"containerPort": port}]
    labels = LABELS | {"pod-template-hash": _HASH}
    document = pod(resources=memory("64Gi", "64Gi"), labels=labels, ports=ports)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"chat-{_HASH}", "uid": "chat"}
    document["metadata"] |= {"name": name, "ownerReferences": [owner | {"controller": True}]}
    made: Document = team.api.sanitize_for_serialization(
        team.core.create_namespaced_pod(team.namespace, document, **options)
    )
    return made


def _published(document: Document) -> Document:
    published: Document = document.get("status", {}).get("attach", {})
    return published


def _entries(document: Document) -> Document:
    entries: Document = document.get("status", {}).get("router", {}).get("entries", {})
    return entries


def test_from_the_first_look_to_ready(team: World) -> None:
    _start(team, "chat-old", attached=False)
    team.create(resource(replicas=1, attach=_ATTACH))
    document = team.until(lambda document: _published(document).get("pods"), "pods in the status")
    restart = _RESTART.format(team.namespace)
    assert _published(document)["pods"] == [
        {"name": "chat-old", "state": "StartedBefore", "message": restart}
    ]
    assert _published(document)["settings"]
    before = condition(document, "Attached")
    assert before
    assert (before["reason"], before["message"].endswith(restart)) == ("StartedBefore", True)

    _start(team, "chat-new", attached=True)
    team.core.delete_namespaced_pod("chat-old", team.namespace, grace_period_seconds=0)
    team.until_condition("Ready", status="True")
    assert team.children().keys() == {("ConfigMap", "qwen-picker")}

    team.change(tiers={"cpu": {"capacity": "50Gi"}})
    older = team.until_condition("Attached", reason="StartedBefore")
    assert older["message"] == f"0 of 1 pod has the tier; 1 with an older plan: {restart}"


def test_what_two_resources_select_gets_the_tier_of_none(team: World) -> None:
    team.create(resource(replicas=1, attach=_ATTACH))
    team.until_condition("Attached", reason="NoPods")
    team.create(resource("same", replicas=1, attach=_ATTACH))
    for name, other in (("qwen", "same"), ("same", "qwen")):
        told = team.until_condition("Attached", reason="SeveralTiers", name=name)
        assert told["message"].startswith(f"KVCacheTier {other} selects all of its pods too, ")
        assert "settings" not in _published(team.get(name))
    _start(team, "chat", attached=False)
    team.delete("kvtier.dev/v1alpha1", "KVCacheTier", "same")
    team.until_condition("Attached", reason="StartedBefore")


def test_what_the_namespace_has_no_room_for_is_not_published(team: World) -> None:
    quota = {"metadata": {"name": "team"}, "spec": {"hard": {"requests.memory": "150Gi"}}}
    team.core.create_namespaced_resource_quota(team.namespace, quota)
    status = {"hard": {"requests.memory": "150Gi"}, "used": {"requests.memory": "0"}}
    team.core.patch_namespaced_resource_quota_status("team", team.namespace, {"status": status})
    _start(team, "chat-old", attached=False)
    used = {"status": status | {"used": {"requests.memory": "64Gi"}}}
    team.core.patch_namespaced_resource_quota_status("team", team.namespace, used)
    team.create(resource(replicas=1, attach=_ATTACH))
    refused = team.until_condition("Attached", reason="QuotaExceeded")
    assert refused["message"].startswith("ResourceQuota team has 86 GiB of requests.memory left, ")
    assert "settings" not in _published(team.get())


def test_a_payload_that_cannot_be_pulled_is_taken_back(team: World) -> None:
    team.create(resource(replicas=1, attach=_ATTACH))
    team.until_condition("Attached", reason="NoPods")
    _start(team, "chat-new", attached=True)
    waiting = {"reason": "ImagePullBackOff", "message": "not found"}
    state = {"name": INIT_NAME, "image": "", "imageID": "", "ready": False, "restartCount": 0}
    statuses = [state | {"state": {"waiting": waiting}}]
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    body = {"status": {"initContainerStatuses": statuses, "conditions": [bound]}}
    team.core.patch_namespaced_pod_status("chat-new", team.namespace, body)
    team.until_condition("Attached", reason="PayloadNotPulled")
    assert "settings" not in _published(team.get())
    team.core.delete_namespaced_pod("chat-new", team.namespace, grace_period_seconds=0)
    document = team.until(lambda document: "pods" not in _published(document), "status without pods")
    assert _published(document)["withdrawn"]["times"] == 1
    told = condition(document, "Attached")
    assert told
    assert told["reason"] == "PayloadNotPulled"
    _start(team, "chat-next", attached=False)


def test_engines_say_whether_they_have_the_tier_and_how_large(team: World) -> None:
    team.create(resource(replicas=1, attach=_ATTACH))
    team.until_condition("Attached", reason="NoPods")
    ready = {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
    ready["conditions"] = [{"type": "Ready", "status": "True"}]
    attached, left_alone = (_INFO.format(reason) for reason in ("Attached", "HasConnector"))
    with engine_that_says(attached + _SIZES) as one, engine_that_says(left_alone) as two:
        _start(team, "chat-one", attached=True, port=one)
        team.core.patch_namespaced_pod_status("chat-one", team.namespace, {"status": ready})
        sized = team.until(lambda document: "gpu" in document["status"].get("tiers", {}), "an engine's tiers")
        assert sized["status"]["tiers"] == {
            "gpu": {"tokens": 1600, "source": "Observed", "blockTokens": 16},
            "cpu": {"bytes": 100 << 30, "tokens": 4096, "source": "Observed"},
        }
        team.until_condition("Attached", reason="AllAttached")
        # 64 tokens an entry
        told = team.until(
            lambda document: _entries(document) == {"gpuPrefix": 25, "cpuPrefix": 64}, "entries"
        )
        assert told["status"]["router"]["configMap"] == "qwen-picker"
        [config] = team.children().values()
        assert "lruCapacityPerServer: 64\n" in config["data"]["epp"]

        _start(team, "chat-two", attached=True, port=two)
        team.core.patch_namespaced_pod_status("chat-two", team.namespace, {"status": ready})
        told = team.until_condition("Attached", reason="LeftAlone")
        assert told["message"].startswith(
            "1 of 2 pods has the tier; pod chat-two is left alone: its engine has another KV connector: "
        )
        states = [(pod["name"], pod["state"]) for pod in _published(team.get())["pods"]]
        assert states == [("chat-two", "LeftAlone"), ("chat-one", "Attached")]


def test_a_namespace_that_did_not_opt_in_is_told_how(world: World, operator: Operator) -> None:
    del operator
    world.create(resource(replicas=1, attach=_ATTACH))
    told = world.until_condition("Attached", reason="NamespaceNotOptedIn")
    assert told["message"].endswith(f"kubectl label namespace {world.namespace} kvtier.dev/attach=enabled")
