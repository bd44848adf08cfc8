"""`kvtier plan NAME` and `kvtier doctor NAME`: a resource of a real API server in place of a file."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kubernetes import client
from tests.cluster.harness.api.kvcachetiers import KVCacheTiers
from tests.cluster.harness.providers.provider import Cluster

from kvtier_operator.cli.cluster.reader import NoResourceError
from kvtier_operator.cli.doctor import doctor
from kvtier_operator.cli.plan import plan

_NUMBERS = count(1)
NAME = "named"
CONFIG = {"num_hidden_layers": 8, "num_attention_heads": 12, "num_key_value_heads": 2, "hidden_size": 768}


@pytest.fixture
def namespace(
    control_plane: Cluster,
    api: client.ApiClient,
    kvcachetiers: KVCacheTiers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    del kvcachetiers  # the CRD is there
    name = f"named-{next(_NUMBERS)}"
    client.CoreV1Api(api).create_namespace({"metadata": {"name": name}})
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig(tmp_path)))
    return name


def _put(api: client.ApiClient, namespace: str, **model: Any) -> dict[str, Any]:  # noqa: ANN401 - as in YAML
    spec = {"model": {"name": "Qwen/Qwen3-32B", **model}, "tiers": {"cpu": {"capacity": "100Gi"}}}
    return KVCacheTiers(api, namespace).create(
        {
            "apiVersion": "kvtier.dev/v1alpha1",
            "kind": "KVCacheTier",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": spec,
        }
    )


def _plan(namespace: str, *words: str) -> Result:
    return CliRunner().invoke(plan, [NAME, "-n", namespace, "--no-hub", *words], catch_exceptions=False)


def test_the_plan_is_that_of_its_file(api: client.ApiClient, namespace: str, tmp_path: Path) -> None:
    path = tmp_path / "cr.json"
    path.write_text(json.dumps(_put(api, namespace)))
    of_the_file = CliRunner().invoke(plan, ["-f", str(path), "--no-hub"], catch_exceptions=False)
    found = _plan(namespace)
    assert (found.exit_code, found.stdout) == (0, of_the_file.stdout)
    assert json.loads(_plan(namespace, "-o", "json").stdout)["tiers"]["cpu"]["tokens"] == 409_600
    larger = json.loads(_plan(namespace, "--cpu", "200Gi", "-o", "json").stdout)
    assert larger["tiers"]["cpu"]["tokens"] == 819_200


def test_the_model_of_a_config_map(api: client.ApiClient, namespace: str) -> None:
    _put(api, namespace, name="team/own", configRef={"name": "own"})
    with pytest.raises(NoResourceError, match=f"namespace {namespace} has no ConfigMap own: make it"):
        _plan(namespace)
    client.CoreV1Api(api).create_namespaced_config_map(
        namespace, {"metadata": {"name": "own"}, "data": {"config.json": json.dumps(CONFIG)}}
    )
    found = json.loads(_plan(namespace, "-o", "json").stdout)
    assert "ConfigMap own of the cluster" in found["geometry"]["source"]


@pytest.mark.parametrize("command", [plan, doctor])
def test_no_such_resource(namespace: str, command: Any) -> None:  # noqa: ANN401 - click's
    with pytest.raises(
        NoResourceError, match=f"namespace {namespace} has no KVCacheTier {NAME}: see kubectl"
    ):
        CliRunner().invoke(command, [NAME, "-n", namespace], catch_exceptions=False)


def test_what_the_doctors_found(api: client.ApiClient, namespace: str) -> None:
    _put(api, namespace)
    asked = [NAME, "-n", namespace]
    nobody = CliRunner().invoke(doctor, asked, catch_exceptions=False)
    assert nobody.exit_code == 0
    assert "there is no engine pod yet" in nobody.stdout
    _put_pod(client.CoreV1Api(api), namespace)
    result = CliRunner().invoke(doctor, asked, catch_exceptions=False)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{namespace}/{NAME}: pod one on no node yet",
        "Fail  memory: 2 GiB needed, 1 GiB allowed",
    ]
    for_a_program = CliRunner().invoke(doctor, [*asked, "-o", "json"], catch_exceptions=False)
    assert for_a_program.exit_code == 1
    assert json.loads(for_a_program.stdout) == {
        "namespace": namespace,
        "name": NAME,
        "outcome": "Fail",
        "pods": [
            {
                "pod": "one",
                "node": "",
                "ended": True,
                "findings": [{"outcome": "Fail", "message": "memory: 2 GiB needed, 1 GiB allowed"}],
            }
        ],
    }


def _put_pod(core: client.CoreV1Api, namespace: str) -> None:
    labels = {
        "app.kubernetes.io/managed-by": "kvtier",
        "app.kubernetes.io/instance": NAME,
        "app.kubernetes.io/component": "engine",
    }
    core.create_namespaced_service_account(namespace, {"metadata": {"name": "pods"}})
    spec = {
        "initContainers": [{"name": "doctor", "image": "none"}],
        "containers": [{"name": "engine", "image": "none"}],
        "serviceAccountName": "pods",
        "automountServiceAccountToken": False,
    }
    core.create_namespaced_pod(namespace, {"metadata": {"name": "one", "labels": labels}, "spec": spec})
    ended = {"exitCode": 1, "message": "memory: 2 GiB needed, 1 GiB allowed"}
    doctors = {"name": "doctor", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    status = {"initContainerStatuses": [doctors | {"state": {"terminated": ended}}]}
    core.patch_namespaced_pod_status("one", namespace, {"status": status})
