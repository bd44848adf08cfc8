import json
from collections.abc import Mapping

import pytest

from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes.answers import ForbiddenError, NotFoundError
from kvtier_common.kubernetes.client import Request
from kvtier_operator.cli.cluster.check_install import check_install

TIERS = "GET /apis/kvtier.dev/v1alpha1"
DEPLOYMENT = "GET /apis/apps/v1/namespaces/system/deployments/op"
CREATE = "POST /apis/kvtier.dev/v1alpha1/namespaces/system/kvcachetiers"
NO_POD = {"type": "Available", "status": "False", "message": "no minimum availability"}
WELL: Mapping[str, object] = {
    TIERS: {"resources": [{"name": "kvcachetiers"}, {"name": "kvcachetiers/status"}]},
    DEPLOYMENT: {"status": {"readyReplicas": 1}},
    CREATE: {},
}


class Server:
    """Answers as it is told, and keeps what it was asked."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self._answers = answers
        self.asked: list[Request] = []

    async def request(self, request: Request) -> bytes:
        self.asked.append(request)
        answer = self._answers[str(request)]
        if isinstance(answer, KvtierError):
            raise answer
        return json.dumps(answer).encode()


async def test_an_installation_that_works() -> None:
    server = Server(WELL)
    well, lines = await check_install(server, "system", "op")
    assert well
    assert [line.split()[0] for line in lines] == ["ok"] * 3
    assert server.asked[-1].query == {"dryRun": "All", "fieldValidation": "Strict"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({TIERS: NotFoundError("GET: not found")}, "knows no kvtier.dev/v1alpha1: was crds.enabled false?"),
        ({TIERS: {"resources": []}}, "kvtier.dev/v1alpha1 has no kvcachetiers"),
        ({DEPLOYMENT: {"status": {"conditions": [NO_POD]}}}, "op is ready: no minimum availability"),
        ({DEPLOYMENT: {}}, "op is ready: it was just made"),
        ({CREATE: ForbiddenError("refused by the policy")}, "refused by the policy"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_each_part_that_fails_is_a_line(changed: Mapping[str, object], said: str) -> None:
    well, lines = await check_install(Server({**WELL, **changed}), "system", "op")
    [failed] = [line for line in lines if line.startswith("FAIL  ")]
    assert not well
    assert failed.endswith(said)
