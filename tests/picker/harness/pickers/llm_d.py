"""llm-d-router itself, where its program is given: the tests do not build it.

`KUBEBUILDER_ASSETS` names a folder that has it as `llm-d-router-0.9` and `llm-d-router-0.10`: the file
/app/epp of the images that kvtier renders.
"""

import json
import os
import queue
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest
from tests.cases.planning import resource
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process
from tests.cluster.harness.programs.tools import find_in_assets
from tests.picker.harness.client import get
from tests.picker.harness.health import is_serving
from tests.picker.harness.pickers.gaie import listens
from tests.picker.harness.pool import Pool
from tests.unit.scorer.picker.gateway.protocol.gateway import answer, request_body, request_headers

from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_scorer.config.contract import (
    DESTINATION,
    METADATA_NAMESPACE,
    SUBSET,
    SUBSET_NAMESPACE,
)

VERSIONS: Final = ("0.9", "0.10")
READY: Final = "inference-extension"
"""Name of the health service where no leader is elected."""
_PROCESS: Final = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
_SCORES: Final = "x-gateway-destination-endpoint-scores"
_PODS: Final = re.compile(rb"^inference_pool_per_pod_queue_size\{", re.MULTILINE)
_ENTRIES: Final = re.compile(
    rb'^llm_d_epp_prefix_indexer_size\{plugin_name="([^"]*)",[^}]*\} (\S+)$', re.MULTILINE
)
_DEADLINE_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Picked:
    """One pick.

    Attributes:
        engine: `ip:port` of the engine that was named.
        scores: Of each engine by `ip:port`, where the picker was asked to tell them.
    """

    engine: str
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LlmD:
    """A running picker.

    Attributes:
        process: It.
        port: Of its ext_proc service.
        health_port: Of its health service.
        metrics_port: Of its Prometheus metrics.
    """

    process: Process
    port: int
    health_port: int
    metrics_port: int

    @property
    def address(self) -> tuple[str, int]:
        """Where Envoy reaches it."""
        return "127.0.0.1", self.port

    def is_serving(self, service: str) -> bool:
        """Whether it says now that one of its services is healthy."""
        return is_serving(f"127.0.0.1:{self.health_port}", service)

    def metrics(self) -> bytes:
        """Its Prometheus metrics."""
        return get(f"http://127.0.0.1:{self.metrics_port}/metrics").body

    def status(self, path: str) -> int:
        """HTTP status of a path on the metrics port."""
        return get(f"http://127.0.0.1:{self.metrics_port}{path}").status

    def pods(self) -> int:
        """How many pods it knows."""
        return len(_PODS.findall(self.metrics()))

    def entries(self) -> dict[str, int]:
        """Entries in the index of each producer, of all pods together."""
        return {name.decode(): int(float(size)) for name, size in _ENTRIES.findall(self.metrics())}

    def pick(self, prompt: str, among: Sequence[str] = ()) -> Picked:
        """Asks for an engine, and takes the call back once it is named.

        Args:
            prompt: Of a completion.
            among: Which engines it may name, by `ip:port`; all where empty.
        """
        with self.asked(prompt, among) as picked:
            return picked

    @contextmanager
    def asked(self, prompt: str, among: Sequence[str] = ()) -> Iterator[Picked]:
        """The same; within this context the call stays open, as it does until an engine has answered.

        Raises:
            grpc.RpcError: The call was cut off.
        """
        body = json.dumps({"model": "fake", "prompt": prompt}).encode()
        sending: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        for chunk in (request_headers(), *_chunks(body)):
            sending.put(_subset(among) + chunk)
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            process = channel.stream_stream(_PROCESS, bytes, bytes)
            call = process(iter(sending.get, None), timeout=_DEADLINE_S)
            try:
                yield _picked(next(call))
            finally:
                sending.put(None)
            for _ in call:
                pass


@dataclass(frozen=True, slots=True)
class LlmDStart:
    """How a picker is started.

    Attributes:
        version: Of `VERSIONS`.
        config: The EndpointPickerConfig as text.
        arguments: As the Deployment has them.
        more: Arguments after those.
        health: The service that says that it is ready.
    """

    version: str
    config: str
    arguments: Sequence[str]
    more: Sequence[str] = ()
    health: str = READY


def needs(version: str) -> pytest.MarkDecorator:
    """Leaves a test out where the picker of a version is not given: it is run by hand."""
    return pytest.mark.program(_name(version))


def _name(version: str) -> str:
    return f"llm-d-router-{version}"


EACH_VERSION: Final = pytest.mark.parametrize(
    "version", [pytest.param(version, marks=needs(version)) for version in VERSIONS]
)
"""A test's parameter `version`."""


def rendered(version: str, **spec: Any) -> tuple[Sequence[str], str]:  # noqa: ANN401 - of the YAML
    """Arguments and configuration of a resource's picker, as its Deployment and its ConfigMap have them."""
    router = {"flavor": "llm-d", "version": version, **spec.pop("router", {})}
    plan = make_plan(resource(router=router, **spec), Observed())
    names = Names.of(plan)
    [deployment] = [
        document
        for document in build_objects(plan)
        if document["kind"] == "Deployment" and document["metadata"]["name"] == names.picker
    ]
    assert names.labels(Component.PICKER).items() <= deployment["metadata"]["labels"].items()
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    return tuple(container["args"]), plan.router.config


@contextmanager
def running_llm_d(start: LlmDStart, pool: Pool, pods: int, folder: Path) -> Iterator[LlmD]:
    """Starts a picker; waits until it is healthy and knows the pods, unless it waits to be the leader.

    Args:
        start: What to start.
        pool: Its InferencePool.
        pods: How many pods it must know before it is taken for ready.
        folder: For its configuration and its log.

    Raises:
        RuntimeError: It ended, or it is not ready in time; the message has the end of its log.
    """
    grpc_port, health_port, metrics_port = free_ports(3)
    config = folder / "picker.yaml"
    config.write_text(start.config)
    process = Process(
        [
            str(find_in_assets(_name(start.version))),
            *start.arguments,
            # where this machine is not a cluster; the last of equal arguments counts
            f"--pool-name={pool.name}",
            f"--pool-namespace={pool.name}",
            f"--config-file={config}",
            f"--grpc-port={grpc_port}",
            f"--grpc-health-port={health_port}",
            f"--metrics-port={metrics_port}",
            "--secure-serving=false",
            *start.more,
        ],
        folder / "picker.log",
        env={**os.environ, "KUBECONFIG": str(pool.pickers[Flavor.LLM_D].kubeconfig(folder))},
    )
    picker = LlmD(process, grpc_port, health_port, metrics_port)
    try:
        process.wait_until(lambda: picker.is_serving(start.health))
        process.wait_until(lambda: pods == 0 or picker.pods() == pods)
        # with TLS it first makes a key of 4,096 bits, and says that it serves before that is done
        process.wait_until(lambda: listens(picker.address))
        yield picker
    finally:
        process.stop()


def _picked(message: bytes) -> Picked:
    told = answer(message).dynamic_metadata.fields[METADATA_NAMESPACE].struct_value.fields
    scores = told[_SCORES].struct_value.fields if _SCORES in told else {}
    engine = told[DESTINATION].string_value
    return Picked(engine, {name: value.number_value for name, value in scores.items()})


def _subset(among: Sequence[str]) -> bytes:
    """The part of a message with what may be named; Envoy puts it into each, the picker reads the last."""
    if not among:
        return b""
    part = ProcessingRequest()
    hint = part.metadata_context.filter_metadata[SUBSET_NAMESPACE].fields[SUBSET]
    for each in among:
        hint.list_value.values.add().string_value = each
    return bytes(part.SerializeToString())


def _chunks(body: bytes) -> Iterator[bytes]:
    """As gateways send a body: parts of 62,000 bytes at most."""
    parts = [body[start : start + 62_000] for start in range(0, len(body), 62_000)]
    for place, part in enumerate(parts, 1):
        yield request_body(part, end_of_stream=place == len(parts))
