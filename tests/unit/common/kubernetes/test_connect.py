"""Which cluster and namespace are meant."""

import asyncio
import json
from pathlib import Path

import pytest

from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.connect import (
    NoClusterError,
    connection,
    own_namespace,
    translate_kubeconfig_errors,
)

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


def test_a_context_of_a_kubeconfig_without_a_current_one(kubeconfig: Path) -> None:
    kubeconfig.write_text(json.dumps({name: CONFIG[name] for name in CONFIG if name != "current-context"}))
    assert own_namespace("one") == "llm"
    with pytest.raises(NoClusterError, match="Expected key current-context"):
        own_namespace()


@pytest.mark.usefixtures("kubeconfig")
def test_a_context_that_there_is_not() -> None:
    with pytest.raises(NoClusterError, match="Expected object with name none in "):
        own_namespace("none")


@pytest.mark.parametrize(
    "content", [b"a: [", b"- just a list", b"", b"contexts: [{}]", b"\xff", b"contexts: 1"]
)
def test_a_kubeconfig_that_is_none(kubeconfig: Path, content: bytes) -> None:
    kubeconfig.write_bytes(content)
    for ask in (own_namespace, lambda: asyncio.run(connection())):
        with pytest.raises(NoClusterError, match="no cluster to talk to: "):
            ask()


@pytest.mark.parametrize("field", ["certificate-authority-data", "certificate-authority"])
def test_a_certificate_that_is_none(kubeconfig: Path, field: str) -> None:
    cluster = {"server": "https://127.0.0.1:1", field: "x" if field.endswith("data") else str(kubeconfig)}
    kubeconfig.write_text(json.dumps(CONFIG | {"clusters": [{"name": "c", "cluster": cluster}]}))

    async def connect() -> None:
        configuration = await connection()
        with translate_kubeconfig_errors():
            Api(configuration, "test")

    with pytest.raises(NoClusterError, match="no cluster to talk to: ") as error:
        asyncio.run(connect())
    assert "\n" not in str(error.value)


def test_trouble_is_told_in_a_line(kubeconfig: Path) -> None:
    kubeconfig.write_text("a: [")
    with pytest.raises(NoClusterError) as error:
        own_namespace()
    assert "\n" not in str(error.value)
