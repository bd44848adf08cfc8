"""Whose a pod is, by what the API server says of its ReplicaSet."""

import asyncio
import json

import pytest

from kvtier_common.errors import UnreachableError
from kvtier_common.kubernetes.answers import NotFoundError
from kvtier_operator.reconcile.cache.pods import ServingPod
from kvtier_operator.reconcile.observe.engines import belongs_to

POD = ServingPod("engine-a", "10.0.0.1", "engine", "of the set")


class Answering:
    """An API server with one answer to all."""

    def __init__(self, answer: bytes | Exception) -> None:
        self.answer = answer

    async def get(self, path: str, *, accept: str, most_bytes: int) -> bytes:
        del path, accept, most_bytes
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def said(answer: bytes | Exception) -> bool:
    return asyncio.run(belongs_to(Answering(answer), "llm", POD, "of the deployment"))  # type: ignore[arg-type]


def replica_set(uid: str, deployment_uid: str) -> bytes:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "engine", "uid": deployment_uid}
    return json.dumps({"metadata": {"uid": uid, "ownerReferences": [owner | {"controller": True}]}}).encode()


@pytest.mark.parametrize(
    ("answer", "is_ours"),
    [
        (replica_set("of the set", "of the deployment"), True),
        (replica_set("of another", "of the deployment"), False),
        (replica_set("of the set", "of another"), False),
        (b'{"metadata": {}}', False),
        (NotFoundError("gone"), False),
    ],
    ids=["ours", "another set", "another deployment", "nobody's", "gone"],
)
def test_whose_it_is(answer: bytes | Exception, is_ours: bool) -> None:
    assert said(answer) is is_ours


@pytest.mark.parametrize("answer", [b"<html>busy</html>", b"[]", b'{"kind": "Status"}'])
def test_what_is_no_replica_set_is_no_answer(answer: bytes) -> None:
    """As of a load balancer before the API server: asked again, and nothing ends for it."""
    with pytest.raises(UnreachableError):
        said(answer)
