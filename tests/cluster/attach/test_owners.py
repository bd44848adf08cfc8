"""Real controllers own the pods: the tier comes into them, and nobody takes it away or makes them anew."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.cluster.attach.conftest import MakePlace
from tests.cluster.attach.owners import KSERVE, LWS, Owner, running_owner
from tests.cluster.attach.place import Place, attached_to
from tests.cluster.attach.shapes import memory, pod, tier
from tests.cluster.harness.api.commands import Command, command
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.programs.process import Process
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.provider import Cluster
from tests.shared.waiting import eventually

from kvtier_connector.payload import ATTACH_VARIABLE, INIT_NAME
from kvtier_operator.api.quantity import parse_quantity

Document = dict[str, Any]
pytestmark = pytest.mark.long  # the controllers are built, which takes minutes
_READY_S: Final = 180.0
_SERVICE: Final = "chat"
_PREFILL: Final = {"app.kubernetes.io/name": _SERVICE, "llm-d.ai/role": "prefill"}
_MAIN: Final = {"name": "main", "image": "vllm/vllm-openai:v0.33.0", "resources": memory("8Gi", "8Gi")}
_GROUP: Final = {"app": "two-nodes"}


@pytest.fixture
def kubectl(cluster: Cluster, tmp_path: Path, say: Say) -> Command:
    return command("kubectl", cluster.kubeconfig(), tmp_path, say)


@pytest.fixture(scope="module")
def run(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, say: Say) -> Callable[[Owner], Any]:
    """Starts a controller for as long as a block lasts."""
    if not isinstance(cluster, ControlPlane):
        pytest.skip("webhooks on loopback need an API server on this machine")
    control_plane = cluster
    return lambda owner: running_owner(owner, control_plane, tmp_path_factory.mktemp(owner.name), say)


@pytest.fixture(scope="module")
def kserve(run: Callable[[Owner], Any]) -> Iterator[Process]:
    with run(KSERVE) as process:
        yield process


@pytest.fixture(scope="module")
def lws(run: Callable[[Owner], Any]) -> Iterator[Process]:
    with run(LWS) as process:
        yield process


def in_force(make_place: MakePlace, labels: dict[str, str], container: str) -> Place:
    """A namespace where pods with these labels get a tier."""
    place = make_place()
    place.publish(tier(podSelector={"matchLabels": labels}, container=container))
    probe = pod(labels=labels, name=container, resources=memory("1Gi", "1Gi"))
    eventually(lambda: attached_to(place.create(probe, dry_run=True)), "effect of the policy")
    return place


def service() -> Document:
    """One with prefill and decode by themselves."""
    template = {"containers": [_MAIN]}
    model = {"uri": "hf://facebook/opt-125m", "name": "facebook/opt-125m"}
    return {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": _SERVICE},
        "spec": {
            "model": model,
            "replicas": 1,
            "template": template,
            "prefill": {"replicas": 1, "template": template},
        },
    }


def of(kubectl: Command, place: Place, kind: str, labels: dict[str, str] | None = None) -> list[Document]:
    selected = ["--selector", ",".join(f"{name}={value}" for name, value in labels.items())] if labels else []
    listed: list[Document] = kubectl.json("get", kind, "--namespace", place.namespace, *selected)["items"]
    return listed


def assert_attached(made: Document, before: Document, container: str) -> None:
    """The pod has what the tier brings, and else what its owner's template says."""
    assert attached_to(made) == "chat"
    assert made["spec"]["initContainers"][0]["name"] == INIT_NAME
    engine, owners = (
        next(one for one in spec["containers"] if one["name"] == container) for spec in (made["spec"], before)
    )
    assert [engine.get(field) for field in ("command", "args", "image")] == [
        owners.get(field) for field in ("command", "args", "image")
    ]
    assert json.loads(next(one["value"] for one in engine["env"] if one["name"] == ATTACH_VARIABLE))
    more_bytes = [
        parse_quantity(engine["resources"][kind]["memory"])
        - parse_quantity(owners["resources"][kind]["memory"])
        for kind in ("requests", "limits")
    ]
    assert min(more_bytes) > 100 << 30


def test_a_service_of_kserve_keeps_its_spec_and_its_prefill_pods_get_the_tier(
    make_place: MakePlace, kserve: Process, kubectl: Command
) -> None:
    place = in_force(make_place, _PREFILL, "main")
    applied = place.create(service())

    def pods() -> list[Document]:
        made = of(kubectl, place, "pods")
        return made if len(made) > 1 else []

    made = eventually(pods, "pods of prefill and decode", _READY_S)
    deployments = of(kubectl, place, "deployments")
    [prefill] = [one for one in deployments if one["metadata"]["name"].endswith("-prefill")]
    for one in made:
        if one["metadata"]["labels"]["llm-d.ai/role"] == "prefill":
            assert_attached(one, prefill["spec"]["template"]["spec"], "main")
        else:
            assert not attached_to(one)

    rounds = kserve.log.read_text().count("Reconciling Workload")
    kubectl("annotate", "llmisvc", _SERVICE, "--namespace", place.namespace, "looked=again")
    eventually(lambda: kserve.log.read_text().count("Reconciling Workload") > rounds, "another look")
    assert {one["metadata"]["generation"] for one in of(kubectl, place, "deployments")} == {1}
    assert {one["metadata"]["uid"] for one in of(kubectl, place, "pods")} == {
        one["metadata"]["uid"] for one in made
    }
    [now] = of(kubectl, place, "llmisvc")
    assert now["spec"] == applied["spec"]


def test_leaders_and_workers_of_several_nodes_get_the_tier(
    make_place: MakePlace, lws: Process, kubectl: Command
) -> None:
    del lws
    place = in_force(make_place, _GROUP, "vllm")
    shell = "vllm serve m --nnodes 2 --node-rank $LWS_WORKER_INDEX --master-addr $LWS_LEADER_ADDRESS"
    engine = {**_MAIN, "name": "vllm", "command": ["sh", "-c", shell]}
    template: Document = {"metadata": {"labels": _GROUP}, "spec": {"containers": [engine]}}
    place.create(
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "two-nodes"},
            "spec": {
                "replicas": 1,
                "leaderWorkerTemplate": {"size": 2, "leaderTemplate": template, "workerTemplate": template},
            },
        }
    )

    def pods() -> list[Document]:
        made = of(kubectl, place, "pods", _GROUP)
        return made if len(made) > 1 else []

    for one in eventually(pods, "a leader and a worker", _READY_S):
        assert_attached(one, template["spec"], "vllm")
        variables = {one["name"] for one in one["spec"]["containers"][0]["env"]}
        assert {"LWS_LEADER_ADDRESS", ATTACH_VARIABLE} <= variables
    assert {one["metadata"]["generation"] for one in of(kubectl, place, "statefulsets")} == {1}
