"""`kvtier status` and `kvtier top` on a real API server, with the rights of whoever asks."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from kubernetes import client
from tests.cases.seen import ENGINE_TEXT, conditions
from tests.cluster.harness.api.kvcachetiers import KVCacheTiers
from tests.cluster.harness.providers.provider import Cluster
from tests.cluster.harness.stand_ins.http_server import engine_that_says

from kvtier_common.kubernetes.connect import NoClusterError
from kvtier_operator.cli.cluster.reader import NoResourceError
from kvtier_operator.cli.cluster.status import status
from kvtier_operator.cli.cluster.top import top
from kvtier_operator.cli.doctor import doctor
from kvtier_operator.cli.plan import plan
from kvtier_operator.install.rbac import view_role
from kvtier_operator.install.settings import Installation

_NUMBERS = count(1)
NAME = "seen"


def _own_address() -> str:
    """An address of this machine that is not loopback, to which the API server forwards nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


@pytest.fixture(scope="module")
def namespace(api: client.ApiClient, kvcachetiers: KVCacheTiers) -> Iterator[str]:
    """With one resource that is ready and its engine, which answers."""
    del kvcachetiers  # the CRD is there
    name, core = f"status-{next(_NUMBERS)}", client.CoreV1Api(api)
    core.create_namespace({"metadata": {"name": name}})
    core.create_namespaced_service_account(name, {"metadata": {"name": "pods"}})
    address = _own_address()
    with engine_that_says(ENGINE_TEXT, address) as port:
        _put_resource(KVCacheTiers(api, name), name, port)
        _put_engine(core, name, address)
        yield name


def _put_resource(there: KVCacheTiers, namespace: str, port: int) -> None:
    spec = {
        "model": {"name": "Qwen/Qwen3-32B"},
        "tiers": {"cpu": {"capacity": "100Gi"}},
        "engine": {"port": port},
    }
    made = there.create(
        {
            "apiVersion": "kvtier.dev/v1alpha1",
            "kind": "KVCacheTier",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": spec,
        }
    )
    timed = [condition | {"lastTransitionTime": "2026-11-27T17:00:00Z"} for condition in conditions()]
    written = {"observedGeneration": 1, "readyReplicas": 1, "conditions": timed}
    there.replace(made | {"status": written}, subresource="status")


def _put_engine(core: client.CoreV1Api, namespace: str, address: str) -> None:
    labels = {
        "app.kubernetes.io/managed-by": "kvtier",
        "app.kubernetes.io/instance": NAME,
        "app.kubernetes.io/component": "engine",
    }
    spec = {
        "containers": [{"name": "engine", "image": "none"}],
        "serviceAccountName": "pods",
        "automountServiceAccountToken": False,
    }
    core.create_namespaced_pod(namespace, {"metadata": {"name": "one", "labels": labels}, "spec": spec})
    answers = {
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    core.patch_namespaced_pod_status("one", namespace, {"status": answers})


@pytest.fixture(autouse=True)
def _administrator(control_plane: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig(tmp_path)))


@pytest.fixture
def viewer(
    control_plane: Cluster,
    api: client.ApiClient,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever asks may view the namespace; nothing joins roles without controllers, so by both parts."""
    name = f"viewer-{next(_NUMBERS)}"
    client.CoreV1Api(api).create_namespaced_service_account(namespace, {"metadata": {"name": name}})
    role, rbac = view_role(Installation(name=name)), client.RbacAuthorizationV1Api(api)
    rbac.create_cluster_role(role)
    for each in (role["metadata"]["name"], "system:aggregate-to-view"):
        binding = {
            "metadata": {"name": f"{name}-{each.replace(':', '-')}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": each},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
        }
        rbac.create_namespaced_role_binding(namespace, binding)
    kubeconfig = control_plane.kubeconfig_for_service_account(namespace, name, tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))


def _status(namespace: str, *arguments: str) -> Result:
    words = [NAME, "-n", namespace, *arguments]
    return CliRunner(env={"COLUMNS": "100"}).invoke(status, words, catch_exceptions=False)


def _fields(namespace: str) -> dict[str, Any]:
    found = json.loads(_status(namespace, "-o", "json").stdout)
    assert isinstance(found, dict)
    return found


def test_all_that_there_is(namespace: str) -> None:
    found = _fields(namespace)
    assert (found["name"], found["readyReplicas"], found["notRead"]) == (NAME, 1, [])
    assert [(pod["name"], pod["state"]) for pod in found["pods"]] == [("one", "ready")]
    assert found["engines"]["answered"] == 1
    assert found["tiers"]["cpu"]["hitTokens"] == 200_000
    assert found["next"]["text"] == "nothing: it serves"


def test_as_a_person_reads_it(namespace: str) -> None:
    shown = _status(namespace).stdout
    assert shown.startswith(f"{namespace}/{NAME}  Qwen/Qwen3-32B  KVTier  1 of 1 engine ready\n")
    assert "tiers of 1 engine, since each started" in shown
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.usefixtures("viewer")
def test_a_viewer_sees_all_but_what_engines_count(namespace: str) -> None:
    found = _fields(namespace)
    assert [pod["name"] for pod in found["pods"]] == ["one"]
    assert found["engines"]["answered"] == 0
    [line] = found["notRead"]
    assert line.startswith("what engines and pickers count: you may not get pods/proxy in namespace ")
    assert found["next"]["text"].startswith("let the engines' metrics be read")


@pytest.mark.usefixtures("viewer")
def test_what_a_viewer_of_a_namespace_may_not_list_is_one_line() -> None:
    result = CliRunner().invoke(top, ["-A"])
    assert "forbidden" in str(result.exception)
    assert "\n" not in str(result.exception)


def test_top_lists_every_resource(namespace: str) -> None:
    shown = CliRunner(env={"COLUMNS": "160"}).invoke(top, ["-n", namespace], catch_exceptions=False).stdout
    heading, line = shown.splitlines()
    assert heading.split() == _words(
        *("name", "ready", "gpu hit", "cpu hit", "disk hit"),
        *("gpu in use", "cpu filled", "disk filled", "gpu saved", "cpu saved", "disk saved"),
    )
    assert line.split()[:5] == [f"{namespace}/{NAME}", "1/1", "40.0%", "20.0%", "5.0%"]
    everywhere = json.loads(CliRunner().invoke(top, ["-A", "-o", "json"], catch_exceptions=False).stdout)
    assert NAME in [each["name"] for each in everywhere]


def test_status_lists_every_resource(namespace: str) -> None:
    shown = CliRunner(env={"COLUMNS": "160"}).invoke(status, ["-n", namespace], catch_exceptions=False).stdout
    heading, line = shown.splitlines()
    assert heading.split() == ["name", "model", "ready", "reason", "engines", "hit", "rate"]
    assert line.split() == [f"{namespace}/{NAME}", "Qwen/Qwen3-32B", "True", "Ready", "1/1", "65.0%"]
    everywhere = json.loads(CliRunner().invoke(status, ["-A", "-o", "json"], catch_exceptions=False).stdout)
    [one] = [each for each in everywhere if each["namespace"] == namespace]
    assert one.keys() == _fields(namespace).keys()


@pytest.mark.parametrize(
    "words",
    [["top"], ["status", "--watch"], ["status", NAME, "--watch"]],
    ids=["top", "status", "status-name"],
)
def test_looks_again_until_it_is_interrupted(namespace: str, words: list[str]) -> None:
    terminal, its_side = pty.openpty()
    # A shell's background job ignores the interrupt, and so does what it starts; who types it does not.
    typed = ["env", "--default-signal=INT", sys.executable, "-m", "kvtier_operator.cli", *words]
    typed += ["-n", namespace, "--interval", "1"]
    with (
        subprocess.Popen(  # noqa: S603 - env, and our own interpreter
            typed, stdin=subprocess.DEVNULL, stdout=its_side, stderr=subprocess.PIPE, text=True
        ) as live,
        os.fdopen(terminal, "rb", buffering=0) as screen,
    ):
        os.close(its_side)
        shown = b""
        while shown.count(f"{namespace}/{NAME}".encode()) < 2:
            shown += screen.read(4096)
        live.send_signal(signal.SIGINT)
        _, said = live.communicate()
    assert (live.returncode, said) == (0, "")


def names_of_resources(kubeconfig: str, namespace: str) -> list[str]:
    """As a shell completes them."""
    typed = ["--kubeconfig", kubeconfig, "-n", namespace]
    context = status.make_context("status", typed, resilient_parsing=True)
    [argument] = [parameter for parameter in status.params if parameter.name == "name"]
    return [completion.value for completion in argument.shell_complete(context, "")]


def _words(*texts: str) -> list[str]:
    return " ".join(texts).split()


@pytest.mark.parametrize("name", ["", "..", "a/b", "A"])
def test_what_is_no_name_of_a_resource(name: str) -> None:
    result = CliRunner().invoke(status, [name])
    assert result.exit_code == 2
    assert f"{name!r} is no KVCacheTier's" in result.stderr


def test_no_such_resource(namespace: str) -> None:
    with pytest.raises(NoResourceError, match=f"namespace {namespace} has no KVCacheTier none: see kubectl"):
        CliRunner().invoke(status, ["none", "-n", namespace], catch_exceptions=False)


def test_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(NoClusterError, match="no cluster to talk to: there is no "):
        CliRunner().invoke(status, [NAME], catch_exceptions=False)


def test_a_kubeconfig_that_is_named(namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = os.environ["KUBECONFIG"]
    monkeypatch.setenv("KUBECONFIG", f"{path}-none")
    named = ["--kubeconfig", path, "-n", namespace]
    for command, words in ((status, [NAME]), (status, []), (top, []), (plan, [NAME]), (doctor, [NAME])):
        assert CliRunner().invoke(command, [*words, *named], catch_exceptions=False).exit_code == 0
    with pytest.raises(NoClusterError, match=rf"no cluster to talk to: there is no {path}-other$"):
        CliRunner().invoke(status, [NAME, "--kubeconfig", f"{path}-other"], catch_exceptions=False)
    assert names_of_resources(path, namespace) == [NAME]


@pytest.mark.usefixtures("viewer")
def test_the_namespace_of_a_context_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    for context in kubeconfig["contexts"]:
        context["context"].pop("namespace", None)
    (bare := tmp_path / "bare").write_text(json.dumps(kubeconfig))
    monkeypatch.setenv("KUBECONFIG", str(bare))
    result = CliRunner().invoke(status, [NAME])
    assert 'in the namespace "default"' in str(result.exception)
