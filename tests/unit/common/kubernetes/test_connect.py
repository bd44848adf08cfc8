"""Which cluster and namespace are meant."""

import json
from pathlib import Path

import pytest

from kvtier_common.kubernetes.connect import NoClusterError, own_namespace

CONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "one",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
    "contexts": [
        {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "llm"}},
        {"name": "other", "context": {"cluster": "c", "user": "u"}},
    ],
}


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config"
    path.write_text(json.dumps(CONFIG))
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


@pytest.mark.usefixtures("kubeconfig")
@pytest.mark.parametrize(("context", "namespace"), [(None, "llm"), ("one", "llm"), ("other", "default")])
def test_the_namespace_of_a_context(context: str | None, namespace: str) -> None:
    assert own_namespace(context) == namespace


@pytest.mark.parametrize("text", ["a: [", "- just a list", ""])
def test_a_kubeconfig_that_is_none(kubeconfig: Path, text: str) -> None:
    kubeconfig.write_text(text)
    with pytest.raises(NoClusterError, match="no cluster to talk to: "):
        own_namespace()


def test_trouble_is_told_in_a_line(kubeconfig: Path) -> None:
    kubeconfig.write_text("a: [")
    with pytest.raises(NoClusterError) as error:
        own_namespace()
    assert "\n" not in str(error.value)
