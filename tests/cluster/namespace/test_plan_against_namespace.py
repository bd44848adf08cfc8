"""`kvtier plan --against-namespace` on a real API server, with the rights of whoever asks."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from kubernetes import client
from tests.cluster.harness.providers.provider import Cluster

from kvtier_operator.cli.inputs.namespace import ClusterError, ClusterFailedError
from kvtier_operator.cli.plan import plan
from kvtier_operator.errors import InvalidInputError

_NUMBERS = count(1)
_EPHEMERAL = {"capacity": "1Ti", "volume": {"ephemeral": {"storageClassName": "nowhere"}}}
_CLAIM = {"capacity": "1Ti", "volume": {"persistentVolumeClaim": {"claimName": "cache"}}}


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


@pytest.fixture
def namespace(core: client.CoreV1Api) -> str:
    name = f"against-{next(_NUMBERS)}"
    core.create_namespace({"metadata": {"name": name}})
    return name


@pytest.fixture(autouse=True)
def _administrator(control_plane: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig(tmp_path)))


def _report(folder: Path, namespace: str, exit_code: int, **spec: Any) -> dict[str, list[str]]:  # noqa: ANN401
    """Reasons and messages of what is no pass, by check."""
    document = {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": {"name": "case"},
        "spec": {"model": {"name": "Qwen/Qwen3-32B"}, "tiers": {"cpu": {"capacity": "100Gi"}}, **spec},
    }
    path = folder / "case.yaml"
    path.write_text(yaml.safe_dump(document))
    arguments = ["-f", str(path), "--no-hub", "--against-namespace", namespace, "-o", "json"]
    result = CliRunner().invoke(plan, arguments, catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    found: dict[str, list[str]] = {}
    for check in json.loads(result.stdout)["checks"]:
        if check["name"] in ("storage", "namespace"):
            words = [] if check["outcome"] == "Pass" else [f"{check['reason']}: {check['message']}"]
            found.setdefault(check["name"], []).extend(words)
    return found


def _disk(disk: dict[str, Any]) -> dict[str, Any]:
    return {"cpu": {"capacity": "100Gi"}, "disk": disk}


def test_nothing_is_missing(namespace: str, tmp_path: Path) -> None:
    assert _report(tmp_path, namespace, 0) == {"storage": []}


def test_a_storage_class_that_is_missing(namespace: str, tmp_path: Path) -> None:
    [message] = _report(tmp_path, namespace, 1, tiers=_disk(_EPHEMERAL))["storage"]
    assert "no storage class nowhere" in message


def test_a_claim_that_is_missing_and_made(core: client.CoreV1Api, namespace: str, tmp_path: Path) -> None:
    said = _report(tmp_path, namespace, 1, tiers=_disk(_CLAIM))
    assert said["storage"][0].startswith("ClaimMissing: the namespace has no PersistentVolumeClaim cache")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Ti"}}}
    core.create_namespaced_persistent_volume_claim(namespace, {"metadata": {"name": "cache"}, "spec": spec})
    assert _report(tmp_path, namespace, 0, tiers=_disk(_CLAIM))["storage"] == []


def test_what_may_not_be_seen_is_said(
    control_plane: Cluster,
    core: client.CoreV1Api,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core.create_namespaced_service_account(namespace, {"metadata": {"name": "nobody"}})
    kubeconfig = control_plane.kubeconfig_for_service_account(namespace, "nobody", tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    said = _report(tmp_path, namespace, 0, tiers=_disk(_EPHEMERAL))
    assert [each.split()[0] for each in said["namespace"]] == ["NamespaceNotSeen:"]
    assert "StorageClasses" in said["namespace"][0]
    said = _report(tmp_path, namespace, 0, tiers=_disk(_CLAIM))
    assert [each for each in said["namespace"] if "PersistentVolumeClaims" in each]
    assert said["storage"] == []


def test_no_such_namespace(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="the cluster has no namespace nowhere; make it"):
        _report(tmp_path, "nowhere", 2)


@pytest.mark.parametrize("name", ["", "No", "a b", "x/y"])
def test_what_is_no_name_of_a_namespace(name: str) -> None:
    result = CliRunner().invoke(plan, ["-f", "none.yaml", "--against-namespace", name])
    assert result.exit_code == 2
    assert f"{name!r} is not a namespace: a-z, 0-9 and -" in result.output


def test_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(ClusterError, match="no cluster to look at"):
        _report(tmp_path, "default", 3)


def test_a_cluster_that_does_not_answer(
    control_plane: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = control_plane.kubeconfig(tmp_path)
    away = kubeconfig.read_text().replace(control_plane.url, "https://127.0.0.1:1")
    kubeconfig.write_text(away)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    with pytest.raises(ClusterFailedError, match="the cluster does not answer") as failed:
        _report(tmp_path, "default", 3)
    assert "\n" not in str(failed.value)
