"""What a cluster that cannot change pods, or will not tell, comes to; and how often it is asked."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest

from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes.answers import ForbiddenError, NotFoundError
from kvtier_operator.planning.cluster.growth import NamespaceRules
from kvtier_operator.reconcile.observe.attachment import AttachmentLookup, AttachmentTerms, Injection

if TYPE_CHECKING:
    from kvtier_common.kubernetes.client import Api

V1 = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
V1BETA1 = "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies"
NAMESPACE = "/api/v1/namespaces/team"
OPTED_IN = {"metadata": {"labels": {"kvtier.dev/attach": "enabled"}}}
_NONE: dict[str, object] = {"items": []}
OURS = {"items": [{"metadata": {"name": "kvtier-operator"}}]}


@dataclass
class Server:
    """An API server that answers so, by path, and knows nothing else."""

    answers: Mapping[str, object]
    asked: list[str] = field(default_factory=list)

    async def get(self, path: str, query: object = None, *, most_bytes: int) -> bytes:
        del query, most_bytes
        self.asked.append(path)
        answer = self.answers.get(path, NotFoundError(path))
        if isinstance(answer, KvtierError):
            raise answer
        return orjson.dumps(answer)


def _terms(server: Server) -> AttachmentTerms:
    lookup = AttachmentLookup(cast("Api", server))

    async def twice() -> AttachmentTerms:
        await lookup.of("team")
        return await lookup.of("team")

    return asyncio.run(twice())


def _server(**by_path: Any) -> Server:  # noqa: ANN401 - as JSON is
    lists = dict.fromkeys((f"{NAMESPACE}/limitranges", f"{NAMESPACE}/resourcequotas"), _NONE)
    return Server({NAMESPACE: OPTED_IN, **lists, **by_path})


@pytest.mark.parametrize(
    ("served", "injection"),
    [
        ({}, Injection.NOT_SERVED),
        ({V1BETA1: {"items": []}}, Injection.NOT_INSTALLED),
        ({V1BETA1: OURS}, Injection.INSTALLED),
        ({V1: OURS, V1BETA1: {"items": []}}, Injection.INSTALLED),
        ({V1: ForbiddenError("no")}, Injection.UNKNOWN),
    ],
)
def test_whether_the_cluster_changes_pods(served: dict[str, object], injection: Injection) -> None:
    server = _server(**served)
    assert _terms(server).injection is injection
    assert len(server.asked) == len(set(server.asked)), "the second time nobody is asked"


def test_a_namespace_that_did_not_opt_in() -> None:
    assert _terms(_server()).opted_in
    assert not _terms(_server(**{NAMESPACE: {"metadata": {}}})).opted_in


def test_what_it_may_not_ask_keeps_nothing_up() -> None:
    refused = ForbiddenError("no")
    paths = (V1, NAMESPACE, f"{NAMESPACE}/limitranges", f"{NAMESPACE}/resourcequotas")
    assert _terms(Server(dict.fromkeys(paths, refused))) == AttachmentTerms(
        Injection.UNKNOWN, opted_in=True, rules=NamespaceRules()
    )
