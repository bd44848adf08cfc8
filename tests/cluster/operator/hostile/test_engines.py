"""What engines that mean ill cost the operator of all, by what they answer when they are asked for tiers."""

import gzip
import socketserver
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import repeat
from threading import Event, Thread

from tests.cluster.harness.operator.operator import Operator
from tests.cluster.operator.world import Document, World, condition, resource
from tests.shared.waiting import eventually

LIMIT_BYTES = 256 << 20
"""The operator's memory as the chart has it."""
OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
SERIES = b'vllm:kvtier_cpu_capacity_tokens{engine="0"} '
GPU = b'vllm:cache_config_info{block_size="16",kv_cache_size_tokens="64000",engine="0"} 1.0\n'
MANY = 9
PATIENCE_S = 300  # nine engines that keep it waiting are asked in between
"""More than are asked at a time."""
READY = {"conditions": [{"type": "Ready", "status": "True"}], "podIP": "127.0.0.1"}

Answer = Callable[[], Iterator[bytes]]


def _value(text: bytes) -> Iterator[bytes]:
    yield OK + b"\r\n" + SERIES + text + b"\n" + GPU


def _bomb() -> Iterator[bytes]:
    """400 MiB in 400 KiB."""
    yield OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(bytes(400 << 20), 9)


def _endless(part: bytes) -> Iterator[bytes]:
    yield OK + b"\r\n"
    yield from repeat(part)


def _redirect(port: int) -> Iterator[bytes]:
    yield b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/metrics\r\n\r\n" % port


class Engine:
    """Answers whatever it is asked in one way."""

    def __init__(self, answer: Answer, stop: Event) -> None:
        self.answer = answer
        self.asked = 0
        self.port = 0
        self.stop = stop


def _loris(stop: Event) -> Iterator[bytes]:
    """Begins, and says nothing more."""
    yield OK + b"\r\nvllm:"
    stop.wait()


@contextmanager
def _serving(engine: Engine) -> Iterator[Engine]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            engine.asked += 1
            with suppress(OSError):
                for part in engine.answer():
                    if engine.stop.is_set():
                        return
                    self.wfile.write(part)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        engine.port = server.server_address[1]
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield engine
        finally:
            engine.stop.set()
            server.shutdown()
            thread.join()


def _start(world: World, name: str, engine: Engine) -> None:
    """A resource whose one engine is ready."""
    world.create(resource(name, replicas=1, engine={"port": engine.port}))
    world.until_settled(name)
    world.add_pod(f"{name}-pod", READY, owner=name)
    world.make_ready(name)


def test_engines_that_mean_ill_cost_neither_memory_nor_others_their_rounds(
    world: World, operator: Operator
) -> None:
    stop = Event()
    honest, victim = (Engine(partial(_value, b"409600"), stop) for _ in range(2))
    with ExitStack() as servers:
        for each in (honest, victim):
            servers.enter_context(_serving(each))
        answers: dict[str, Answer] = {
            "bomb": _bomb,
            "endless": partial(_endless, SERIES + b"1\n" + bytes(1 << 20)),
            "line": partial(_endless, b"x" * (1 << 20)),
            "samples": partial(_endless, (SERIES + b"1\n") * 10_000),
            "large": partial(_value, b"1e300"),
            "inf": partial(_value, b"+Inf"),
            "nan": partial(_value, b"NaN"),
            "redirect": partial(_redirect, victim.port),
        }
        hostile = {
            name: servers.enter_context(_serving(Engine(answer, stop))) for name, answer in answers.items()
        }
        loris = servers.enter_context(_serving(Engine(partial(_loris, stop), stop)))
        for name, engine in hostile.items():
            _start(world, name, engine)
        for number in range(MANY):
            _start(world, f"loris-{number}", loris)
        eventually(lambda: all(each.asked for each in hostile.values()), "a look at each of them")
        eventually(lambda: loris.asked, "a look at the slow ones")

        _start(world, "honest", honest)
        status = world.until(_is_observed, "the honest engine's tiers", "honest", PATIENCE_S)["status"]
        assert status["tiers"]["cpu"]["tokens"] == 409_600
        for name in hostile:
            said = world.until(_is_told, f"word of {name}", name, deadline_s=PATIENCE_S)
            assert not _is_observed(said), name
        assert not victim.asked, "a redirect was followed"
        assert operator.peak_bytes() < LIMIT_BYTES


def _is_observed(document: Document) -> bool:
    cpu = document.get("status", {}).get("tiers", {}).get("cpu", {})
    return bool(cpu.get("source") == "Observed")


def _is_told(document: Document) -> bool:
    """Whether the resource itself says which pod is not believed."""
    engines = condition(document, "EnginesReady") or {}
    pod = f"{document['metadata']['name']}-pod"
    return f"what pod {pod} says of its tiers is not taken: " in engines.get("message", "")
