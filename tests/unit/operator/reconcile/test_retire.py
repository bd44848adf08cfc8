"""What an engine's metrics make of its pod's deletion cost."""

import asyncio
from collections.abc import Collection, Iterable, Sequence

import pytest

from kvtier_common.kubernetes.answers import ForbiddenError
from kvtier_common.kubernetes.client import Request
from kvtier_common.metrics.text import Families, MetricsText, read_families
from kvtier_operator.reconcile import retire
from kvtier_operator.reconcile.cache.pods import DELETION_COST, PodCache, ServingPod
from kvtier_operator.reconcile.cache.resources import Key
from kvtier_operator.reconcile.retire import READ, Retirement, Scaled, deletion_cost, fill_percent
from kvtier_operator.reconcile.settings import RetireTimings


def families(**values: str) -> Families:
    """Gauges of the tiers, such as `cpu_cached="10"`, of two data-parallel engines with the same."""
    reading = MetricsText(READ)
    for name, value in values.items():
        for engine in (0, 1):
            text = f'vllm:kvtier_{name}_tokens{{engine="{engine}"}} {value}\n'
            reading.feed(text.encode())
    return reading.end()


@pytest.mark.parametrize(
    ("values", "percent"),
    [
        ({}, None),
        ({"cpu_capacity": "0", "cpu_cached": "0"}, None),
        ({"cpu_capacity": "1000", "cpu_cached": "0"}, 0),
        ({"cpu_capacity": "1000", "cpu_cached": "250"}, 25),
        ({"cpu_capacity": "1000", "cpu_cached": "2000"}, 100),
        ({"cpu_capacity": "1000", "cpu_cached": "1000", "disk_capacity": "9000", "disk_cached": "0"}, 10),
    ],
)
def test_fill(values: dict[str, str], percent: float | None) -> None:
    assert fill_percent(families(**values)) == percent


@pytest.mark.parametrize(
    ("fill", "before", "cost"),
    [
        (0, "", "0"),
        (26, "", "30"),
        (26, "20", "20"),
        (29.9, "20", "20"),
        (30, "20", "30"),
        (100, "20", "100"),
        (3, "100", "0"),
        (50, "somebody's", "50"),
        (50, "-2147483648", "50"),
    ],
)
def test_it_moves_by_steps(fill: float, before: str, cost: str) -> None:
    assert deletion_cost(fill, before) == cost


FILLS = {"10.0.0.1:8000": 900, "10.0.0.2:8000": 100}
SLOW = "10.0.0.3:8000"


class FakeApi:
    """Keeps what is patched and whose owner was asked for; refuses what it is told to."""

    def __init__(self, refused: Collection[str]) -> None:
        self.refused = refused
        self.patched: list[tuple[str, object]] = []
        self.asked: list[str] = []

    async def request(self, request: Request) -> bytes:
        if request.path.split("/")[4] in self.refused:
            raise ForbiddenError("pods is forbidden")
        self.patched.append((request.path, request.body))
        return b"{}"


@pytest.fixture
def api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    async def read_metrics(_: object, address: str, wanted: Iterable[bytes]) -> Families:
        if address == SLOW:
            await asyncio.Event().wait()
        if address not in FILLS:
            raise TimeoutError
        text = f"vllm:kvtier_cpu_capacity_tokens 1000\nvllm:kvtier_cpu_cached_tokens {FILLS[address]}\n"
        return read_families(text.encode(), wanted)

    async def belongs_to(server: FakeApi, _: str, pod: ServingPod, deployment_uid: str) -> bool:
        server.asked.append(pod.replica_set)
        return pod.replica_set_uid == f"of {deployment_uid}"

    monkeypatch.setattr(retire, "read_metrics", read_metrics)
    monkeypatch.setattr(retire, "belongs_to", belongs_to)
    return FakeApi(getattr(request, "param", ()))


def engine(  # noqa: PLR0913 - what a pod has
    name: str,
    address: str,
    *,
    cost: str = "",
    owner: str = "of ours",
    manager: str = "kvtier",
    namespace: str = "llm",
) -> dict[str, object]:
    """A ready pod as a watch shows it."""
    written = {"manager": manager, "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{DELETION_COST}": {}}}}}
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
            "namespace": namespace,
            "uid": f"uid of {name}",
            "labels": labels,
            "annotations": {DELETION_COST: cost} if cost else {},
            "managedFields": [{"operation": "Update"}, *([written] if cost else [])],
            "ownerReferences": [controller | {"controller": True}],
        },
        "status": {"podIP": address, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def retirement_of(
    api: FakeApi, pods: Iterable[dict[str, object]], namespaces: Sequence[str], resource_s: float = 3600.0
) -> Retirement:
    cache = PodCache(lambda _, __: None)
    for pod in pods:
        cache.upsert(pod)
    scaled = [Scaled(Key(namespace, "qwen"), "ours", 8000) for namespace in namespaces]
    timings = RetireTimings(round_s=3600.0, forbidden_s=3600.0, resource_s=resource_s)
    return Retirement(api, cache, lambda: iter(scaled), timings, 5.0)  # type: ignore[arg-type]


def looks_at(
    api: FakeApi, *pods: dict[str, object], namespaces: Sequence[str] = ("llm",), rounds: int = 1
) -> None:
    """What the operator does of its own accord, so many times."""

    async def look() -> None:
        looking = retirement_of(api, pods, namespaces)
        for _ in range(rounds):
            await looking.look()

    asyncio.run(look())


def test_what_differs_is_written_with_the_pods_uid(api: FakeApi) -> None:
    looks_at(api, engine("full", "10.0.0.1", cost="90"), engine("new", "10.0.0.2"))
    [(path, body)] = api.patched
    assert path == "/api/v1/namespaces/llm/pods/new"
    assert body == {"metadata": {"uid": "uid of new", "annotations": {DELETION_COST: "10"}}}


def test_a_stranger_and_one_that_is_silent_are_left_alone(api: FakeApi) -> None:
    stranger = engine("other", "10.0.0.1", owner="of theirs")
    looks_at(api, stranger, engine("silent", "10.0.0.9"), engine("new", "10.0.0.2"))
    assert [path for path, _ in api.patched] == ["/api/v1/namespaces/llm/pods/new"]


@pytest.mark.parametrize("manager", ["kubectl-annotate", "kube-controller-manager", ""])
def test_what_somebody_else_wrote_stays(api: FakeApi, manager: str) -> None:
    """Such as an annotation of spec.engine.podTemplate."""
    theirs = engine("theirs", "10.0.0.1", cost="1000", manager=manager)
    looks_at(api, theirs, engine("ours", "10.0.0.2", cost="90"))
    assert [path.rpartition("/")[2] for path, _ in api.patched] == ["ours"]


def test_the_owner_of_a_replica_set_is_looked_up_once(api: FakeApi) -> None:
    looks_at(api, engine("one", "10.0.0.1"), engine("two", "10.0.0.2"), rounds=3)
    assert api.asked == ["set"]


def test_a_stranger_is_looked_up_again(api: FakeApi) -> None:
    looks_at(api, engine("other", "10.0.0.1", owner="of theirs"), rounds=2)
    assert (api.asked, api.patched) == (["set", "set"], [])


def slow_engines() -> list[dict[str, object]]:
    return [engine(f"slow-{number}", SLOW.partition(":")[0]) for number in range(9)]


def test_engines_that_never_answer_hold_no_other_resource_up(api: FakeApi) -> None:
    async def until_it_waits() -> None:
        pods = [*slow_engines(), engine("new", "10.0.0.2", namespace="next")]
        looking = asyncio.create_task(retirement_of(api, pods, ("llm", "next")).run())
        for _ in range(200):
            await asyncio.sleep(0)
        assert not looking.done()
        looking.cancel()

    asyncio.run(until_it_waits())
    assert [path for path, _ in api.patched] == ["/api/v1/namespaces/next/pods/new"]


def test_a_round_ends_although_engines_never_answer(api: FakeApi) -> None:
    asyncio.run(retirement_of(api, slow_engines(), ("llm",), resource_s=0.0).look())
    assert api.patched == []


@pytest.mark.parametrize("api", [["llm"]], indirect=True)
def test_a_refusal_is_said_once_and_is_of_its_namespace(
    api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    pods = [engine(name, "10.0.0.1") for name in ("one", "two")]
    looks_at(api, *pods, engine("new", "10.0.0.2", namespace="next"), namespaces=("llm", "next"), rounds=2)
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "engines that hold least do not go first: no pod may be annotated: pods is forbidden"
    ]
    assert {path for path, _ in api.patched} == {"/api/v1/namespaces/next/pods/new"}
