"""What is said of a cluster that answers otherwise than with what was asked for."""

import json
from collections.abc import Mapping

import pytest
from tests.cases.seen import pod, resource

from kvtier_common.errors import KvtierError, UnreachableError
from kvtier_common.kubernetes.answers import ForbiddenError, NotFoundError
from kvtier_operator.cli.cluster.reader import NoResourceError, Reader

TIERS = "/apis/kvtier.dev/v1alpha1/namespaces/llm/kvcachetiers"
TIER = f"{TIERS}/qwen3-32b"
PODS = "/api/v1/namespaces/llm/pods"
METRICS = f"{PODS}/a:8000/proxy/metrics"
NO_PROXY = (
    "what engines and pickers count: you may not get pods/proxy in namespace llm; Kubernetes' role edit may"
)
NO_KIND = NotFoundError(f"GET {TIER}: 404 Not Found")
"""An API server without the CRD answers with a page that is no metav1.Status."""


class _Server:
    """Answers by path: with an object, or with an error."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self._answers = answers

    async def get(self, path: str, query: object = None, accept: str = "", *, most_bytes: int = 0) -> bytes:
        del query, accept, most_bytes
        answer = self._answers[path]
        if isinstance(answer, KvtierError):
            raise answer
        return json.dumps(answer).encode()


def reader(answers: Mapping[str, object]) -> Reader:
    return Reader(_Server(answers))  # type: ignore[arg-type]


async def test_a_cluster_without_kvtier() -> None:
    said = "the cluster does not know KVCacheTiers: kvtier is not installed there"
    with pytest.raises(NoResourceError, match=said):
        await reader({TIER: NO_KIND}).resource("llm", "qwen3-32b")
    with pytest.raises(NoResourceError, match=said):
        await reader({TIERS: NO_KIND}).resources("llm")


async def test_no_such_resource() -> None:
    gone = NotFoundError('kvcachetiers.kvtier.dev "qwen3-32b" not found')
    with pytest.raises(NoResourceError, match="namespace llm has no KVCacheTier qwen3-32b: see kubectl get"):
        await reader({TIER: gone}).document("llm", "qwen3-32b")


async def test_no_such_config_map() -> None:
    path = "/api/v1/namespaces/llm/configmaps/own"
    with pytest.raises(NoResourceError, match="namespace llm has no ConfigMap own: make it"):
        await reader({path: NotFoundError('configmaps "own" not found')}).config_map("llm", "own")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({PODS: ForbiddenError("pods is forbidden")}, "pods: you may not list them in namespace llm"),
        (
            {METRICS: ForbiddenError('cannot get resource "pods/proxy"')},
            NO_PROXY,
        ),
        ({METRICS: UnreachableError("no\nanswer")}, "a: its /metrics: no answer"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_may_not_be_read_is_a_line(answers: Mapping[str, object], said: str) -> None:
    there: Mapping[str, object] = {TIER: resource(), PODS: {"items": [pod("a")], "metadata": {}}}
    seen = await reader({**there, **answers}).resource("llm", "qwen3-32b")
    assert seen.unread == (said,)
    assert not seen.metrics


async def test_pages_are_read_to_the_last() -> None:
    first = {"items": [resource()], "metadata": {"continue": "more"}}
    pages = iter([first, {"items": [resource()], "metadata": {}}])

    class _Paged(_Server):
        async def get(
            self, path: str, query: object = None, accept: str = "", *, most_bytes: int = 0
        ) -> bytes:
            del path, query, accept, most_bytes
            return json.dumps(next(pages)).encode()

    assert await Reader(_Paged({})).names("llm") == ["qwen3-32b"] * 2  # type: ignore[arg-type]
