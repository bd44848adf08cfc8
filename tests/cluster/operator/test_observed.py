"""What a running engine says of its tiers reaches the status and, where it matters, the picker."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event

import pytest
from tests.cluster.harness.stand_ins.http_server import serving
from tests.cluster.operator.world import Document, World, condition, resource
from tests.shared.waiting import eventually

PLANNED_TOKENS = 409_600
ENTRIES = 6_400


class FakeEngine:
    """Says of its tiers what a test wants: a real engine's are as planned."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cpu_tokens = 0
        self.block_tokens = 16
        self.pinned_bytes: int | None = None
        self.broken = False
        self.asked = Event()


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with _serving(lambda: fake) as port:
        fake = FakeEngine(port)
        yield fake


@contextmanager
def _serving(of: Callable[[], FakeEngine], host: str = "127.0.0.1", at: int = 0) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            of().asked.set()
            if of().broken:
                self.send_error(503)
                return
            text = f'vllm:kvtier_cpu_capacity_tokens{{engine="0"}} {of().cpu_tokens}.0\n'
            if of().pinned_bytes is not None:
                text += f'vllm:kvtier_cpu_pinned_bytes{{engine="0"}} {of().pinned_bytes}.0\n'
            labels = f'block_size="{of().block_tokens}",kv_cache_size_tokens="64000",engine="0"'
            text += f"vllm:cache_config_info{{{labels}}} 1.0\n"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler, host, at) as port:
        yield port


def _start(world: World, engine: FakeEngine) -> None:
    """A resource whose one engine is ready."""
    world.create(resource(replicas=1, engine={"port": engine.port}))
    world.until_settled()
    ready = {"type": "Ready", "status": "True"}
    world.add_pod("one", {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}], "conditions": [ready]})
    world.make_ready()


def _run(world: World, engine: FakeEngine) -> Document:
    """The same, once the engine was asked for its tiers."""
    _start(world, engine)
    return world.until(_is_observed, "observed tier")


def _is_observed(document: Document) -> bool:
    cpu = document.get("status", {}).get("tiers", {}).get("cpu", {})
    return bool(cpu.get("source") == "Observed")


@pytest.mark.parametrize("share", [1.0, 0.96])
def test_a_size_near_the_plan_is_told_and_leaves_the_picker_alone(
    world: World, engine: FakeEngine, share: float
) -> None:
    engine.cpu_tokens = int(PLANNED_TOKENS * share)
    status = _run(world, engine)["status"]
    assert status["tiers"]["cpu"]["tokens"] == engine.cpu_tokens
    gpu = {"bytes": 64_000 * 262_144, "tokens": 64_000, "source": "Observed", "blockTokens": 16}
    assert status["tiers"]["gpu"] == gpu
    assert status["router"]["entries"]["cpuPrefix"] == ENTRIES
    assert status["router"]["entries"]["gpuPrefix"] == 1_000, "known for the first time"


def test_the_picker_follows_the_block_that_vllm_has_chosen(world: World, engine: FakeEngine) -> None:
    engine.cpu_tokens, engine.block_tokens = PLANNED_TOKENS, 128
    status = _run(world, engine)["status"]
    assert status["tiers"]["gpu"]["blockTokens"] == 128
    assert (status["router"]["tokensPerEntry"], status["router"]["entries"]["cpuPrefix"]) == (128, 3_200)


def test_what_is_not_locked_in_memory_is_said(world: World, engine: FakeEngine) -> None:
    engine.cpu_tokens, engine.pinned_bytes = PLANNED_TOKENS, 20 << 30
    status = _run(world, engine)["status"]
    assert status["tiers"]["cpu"]["pinnedBytes"] == 20 << 30
    [engines] = [condition for condition in status["conditions"] if condition["type"] == "EnginesReady"]
    assert "a CPU tier of 100 GiB, of which 20 GiB are locked in memory" in engines["message"]


def test_the_picker_follows_a_size_that_is_clearly_another_and_a_new_spec_is_as_planned(
    world: World, engine: FakeEngine
) -> None:
    engine.cpu_tokens = PLANNED_TOKENS // 2
    status = _run(world, engine)["status"]
    assert status["tiers"]["cpu"]["bytes"] == 50 << 30
    assert status["router"]["entries"]["cpuPrefix"] == ENTRIES // 2
    picker = world.find("v1", "ConfigMap", "qwen-picker")
    assert picker is not None
    assert str(ENTRIES // 2) in str(picker["data"])
    world.scale(2)
    scaled = world.until_settled()
    assert scaled["status"]["router"] == status["router"], "the same engines, only more"
    world.change(tiers={"cpu": {"capacity": "200Gi"}})
    changed = world.until_settled()["status"]
    assert (changed["tiers"]["cpu"]["source"], changed["router"]["entries"]["cpuPrefix"]) == (
        "Planned",
        2 * ENTRIES,
    )
    engine.cpu_tokens = PLANNED_TOKENS
    world.make_ready()
    seen = world.until(_is_observed, "observed tier of the new engines")["status"]
    assert seen["router"]["entries"]["cpuPrefix"] == ENTRIES


def test_an_engine_that_did_not_answer_is_asked_again_whatever_happens_meanwhile(
    world: World, engine: FakeEngine
) -> None:
    engine.broken, engine.cpu_tokens = True, PLANNED_TOKENS
    _start(world, engine)
    assert engine.asked.wait(20)
    engine.broken = False
    world.scale(2)
    world.until_settled()
    world.make_ready()
    assert world.until(_is_observed, "observed tier")["status"]["tiers"]["cpu"]["tokens"] == PLANNED_TOKENS


@pytest.mark.parametrize(
    "maker",
    [
        "nobody",
        "a ReplicaSet that is not there",
        "a ReplicaSet of somebody's",
        "a path to the engine's ReplicaSet",
        "a query after the engine's ReplicaSet",
    ],
)
def test_a_pod_that_only_says_it_is_an_engine_is_not_asked(
    world: World, engine: FakeEngine, maker: str
) -> None:
    """The first by name is another's; the engine is asked all the same, and the other never."""
    engine.cpu_tokens = PLANNED_TOKENS
    with _serving(lambda: other, "127.0.0.2", engine.port):
        other = FakeEngine(engine.port)
        world.create(resource(replicas=1, engine={"port": engine.port}))
        world.until_settled()
        deployment = world.find("apps/v1", "Deployment", "qwen-engine")
        assert deployment
        own = world.replica_set(deployment)
        controllers: dict[str, tuple[Document, ...]] = {
            "nobody": (),
            "a ReplicaSet that is not there": (own | {"uid": "0" * 8 + "-0000-0000-0000-" + "0" * 12},),
            "a ReplicaSet of somebody's": (world.replica_set(deployment, owner_uid="somebody-s"),),
            "a path to the engine's ReplicaSet": (own | {"name": f"%2e%2e/replicasets/{own['name']}"},),
            "a query after the engine's ReplicaSet": (own | {"name": f"{own['name']}?resourceVersion=0"},),
        }
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        at = {"podIP": "127.0.0.2", "podIPs": [{"ip": "127.0.0.2"}]}
        world.add_pod("a", ready | at, controllers=controllers[maker])
        world.add_pod("one", ready | {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]})
        world.make_ready()
        world.until(_is_observed, "observed tier")
        assert not other.asked.is_set()


def test_what_no_plan_can_justify_is_not_taken_and_the_status_goes_on(
    world: World, engine: FakeEngine, log: Path
) -> None:
    engine.cpu_tokens = 1 << 62
    _start(world, engine)
    told = (
        "what pod one says of its tiers is not taken: 4611686018427387904 tokens in tier cpu, 819200 at most"
    )
    eventually(lambda: told in log.read_text(), "a line about the pod")
    world.until(lambda each: told in str(condition(each, "EnginesReady")), "word in the status")
    world.until_condition("EnginesReady", status="True")
    world.change(replicas=2)
    assert world.until_settled()["status"]["tiers"]["cpu"]["source"] == "Planned"
