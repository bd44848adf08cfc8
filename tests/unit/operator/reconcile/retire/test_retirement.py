"""One round over the engines: what is written, and what a refusal, a stranger or a silent one changes."""

import asyncio
from collections.abc import Iterable

import pytest

from kvtier_common.kubernetes.client import Request
from kvtier_common.kubernetes.errors import ForbiddenError
from kvtier_common.metrics.text import Families, read_families
from kvtier_operator.reconcile.cache.pods import PodCache
from kvtier_operator.reconcile.cache.resources import Key
from kvtier_operator.reconcile.facts.pod import DELETION_COST, ServingPod
from kvtier_operator.reconcile.retire import retirement
from kvtier_operator.reconcile.retire.retirement import Retirement, Scaled
from kvtier_operator.reconcile.settings.timings import RetireTimings

FILLS = {"10.0.0.1:8000": 900, "10.0.0.2:8000": 100}


class FakeApi:
    """Keeps what is patched, or refuses it."""

    def __init__(self, *, refuses: bool) -> None:
        self.refuses = refuses
        self.patched: list[tuple[str, object]] = []

    async def request(self, request: Request) -> bytes:
        if self.refuses:
            raise ForbiddenError("pods is forbidden")
        self.patched.append((request.path, request.body))
        return b"{}"


@pytest.fixture
def api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    async def read_metrics(_: object, address: str, wanted: Iterable[bytes]) -> Families:
        if address not in FILLS:
            raise TimeoutError
        text = f"vllm:kvtier_cpu_capacity_tokens 1000\nvllm:kvtier_cpu_cached_tokens {FILLS[address]}\n"
        return read_families(text.encode(), wanted)

    async def belongs_to(_: object, __: str, pod: ServingPod, deployment_uid: str) -> bool:
        return pod.replica_set_uid == f"of {deployment_uid}"

    monkeypatch.setattr(retirement, "read_metrics", read_metrics)
    monkeypatch.setattr(retirement, "belongs_to", belongs_to)
    return FakeApi(refuses=getattr(request, "param", False))


def engine(name: str, address: str, *, cost: str = "", owner: str = "of ours") -> dict[str, object]:
    """A ready pod as a watch shows it."""
    labels = {"app.kubernetes.io/instance": "qwen", "app.kubernetes.io/component": "engine"}
    controller = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "set",
        "uid": owner,
        "controller": True,
    }
    return {
        "metadata": {
            "name": name,
            "namespace": "llm",
            "uid": f"uid of {name}",
            "labels": labels,
            "annotations": {DELETION_COST: cost} if cost else {},
            "ownerReferences": [controller | {"controller": True}],
        },
        "status": {"podIP": address, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def one_round(api: FakeApi, *pods: dict[str, object]) -> None:
    cache = PodCache(lambda _, __: None)
    for each in pods:
        cache.upsert(each)
    scaled = [Scaled(Key("llm", "qwen"), "ours", 8000)]
    timings = RetireTimings(round_s=3600.0, forbidden_s=3600.0)

    async def until_it_waits() -> None:
        running = asyncio.create_task(
            Retirement(api, cache, lambda: iter(scaled), timings, 5.0).run()  # type: ignore[arg-type]
        )
        for _ in range(200):
            await asyncio.sleep(0)
        assert not running.done()
        running.cancel()

    asyncio.run(until_it_waits())


def test_what_differs_is_written_with_the_pods_uid(api: FakeApi) -> None:
    one_round(api, engine("full", "10.0.0.1", cost="90"), engine("new", "10.0.0.2"))
    [(path, body)] = api.patched
    assert path == "/api/v1/namespaces/llm/pods/new"
    assert body == {"metadata": {"uid": "uid of new", "annotations": {DELETION_COST: "10"}}}


def test_a_stranger_and_one_that_is_silent_are_left_alone(api: FakeApi) -> None:
    stranger = engine("other", "10.0.0.1", owner="of theirs")
    one_round(api, stranger, engine("silent", "10.0.0.9"), engine("new", "10.0.0.2"))
    assert [path for path, _ in api.patched] == ["/api/v1/namespaces/llm/pods/new"]


@pytest.mark.parametrize("api", [True], indirect=True)
def test_a_refusal_is_said_once(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    one_round(api, engine("one", "10.0.0.1"), engine("two", "10.0.0.2"))
    assert [each.message for each in caplog.records if each.levelname == "WARNING"] == [
        "engines that hold least do not go first: no pod may be annotated: pods is forbidden"
    ]
