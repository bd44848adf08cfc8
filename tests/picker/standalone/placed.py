"""The configuration of a resource's own gateway, with addresses of this machine for its names."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.cases.planning import resource
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process
from tests.picker.harness.envoy import Envoy, started_envoy
from tests.picker.harness.health import is_serving

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.objects.gateway.standalone import (
    CERTIFICATE_FILE,
    CERTIFICATE_FOLDER,
    CONFIG_FOLDER,
    KEYS_FOLDER,
)
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_scorer.picker.gateway.transport.certificates import make_certificate

NAME = "case"
READY = "/gateway/ready"
NOBODY = ("127.0.0.1", 1)
Places = Mapping[str, Sequence[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A resource with a gateway of its own.

    Attributes:
        flavor: Its picker.
        mode: What becomes of requests while that does not answer.
        settings: `spec.router.gateway.standalone`.
        router: More of `spec.router`.
        gateway: More of `spec.router.gateway`.
        tracing: `spec.observability.tracing`.
        engine: `spec.engine`.
    """

    flavor: str = "builtin"
    mode: str = "FailOpen"
    settings: Mapping[str, Any] | None = None
    router: Mapping[str, Any] | None = None
    gateway: Mapping[str, Any] | None = None
    tracing: Mapping[str, Any] | None = None
    engine: Mapping[str, Any] | None = None

    def files(self) -> dict[str, Any]:
        """The gateway's ConfigMap, read."""
        found = self._built("ConfigMap", "gateway")["data"]
        return {name: json.loads(text) for name, text in found.items()}

    def picker_config(self) -> str:
        """The picker's configuration."""
        return str(self._built("ConfigMap", "picker")["data"]["picker.yaml"])

    def picker_variables(self) -> dict[str, str]:
        """Those of the picker's container that have a value."""
        [container] = self._built("Deployment", "picker")["spec"]["template"]["spec"]["containers"]
        return {one["name"]: one["value"] for one in container["env"] if "value" in one}

    def picker_arguments(self) -> list[str]:
        """The picker's arguments."""
        [container] = self._built("Deployment", "picker")["spec"]["template"]["spec"]["containers"]
        return list(container["args"])

    def pod(self) -> dict[str, Any]:
        """The gateway's pod."""
        return dict(self._built("Deployment", "gateway")["spec"]["template"]["spec"])

    def routes(self) -> bool:
        """Whether it knows other resources."""
        return "model-router" in self.sidecars()

    def sidecars(self) -> dict[str, Any]:
        """What runs beside its Envoy, by name."""
        return {one["name"]: one for one in self.pod().get("initContainers", ())}

    def concurrency(self) -> int:
        """Envoy's threads."""
        arguments = self._container("gateway")["args"]
        return int(arguments[arguments.index("--concurrency") + 1])

    def memory_bytes(self, container: str) -> int:
        """Memory limit of a container of the gateway's pod."""
        return int(parse_quantity(self._container(container)["resources"]["limits"]["memory"]))

    def _container(self, name: str) -> dict[str, Any]:
        pod = self.pod()
        containers = {one["name"]: one for one in (*pod["containers"], *pod.get("initContainers", ()))}
        return dict(containers[name])

    def _built(self, kind: str, component: str) -> Any:  # noqa: ANN401 - an object
        own = {"standalone": self.settings} if self.settings else {}
        gateway = {"provider": "standalone", **own, **(self.gateway or {})}
        router = {"flavor": self.flavor, "failureMode": self.mode, "gateway": gateway, **(self.router or {})}
        more: dict[str, Any] = {"observability": {"tracing": self.tracing}} if self.tracing else {}
        more |= {"engine": self.engine} if self.engine else {}
        [found] = [
            document
            for document in build_objects(make_plan(resource(router=router, **more), Observed()))
            if (document["kind"], document["metadata"]["name"]) == (kind, f"{NAME}-{component}")
        ]
        return found


@contextmanager
def running_gateway(wanted: Wanted, places: Places, folder: Path) -> Iterator[Envoy]:
    """Starts its Envoy, on a port of the kernel's choice.

    Args:
        wanted: The resource.
        places: Who answers by the name of each Service.
        folder: For its files; its certificate is where `certificate_of` puts one, its clients' keys where
            `mount` puts them as `secret-keys`.
    """
    folder.mkdir(exist_ok=True)
    files = wanted.files()
    if CERTIFICATE_FILE in files:
        text = json.dumps(files[CERTIFICATE_FILE]).replace(CERTIFICATE_FOLDER, str(folder / "certificate"))
        (folder / CERTIFICATE_FILE).write_text(text)
    text = json.dumps(files["envoy.json"]).replace(CONFIG_FOLDER, str(folder))
    whole = json.loads(text.replace(KEYS_FOLDER, str(folder)))
    with ExitStack() as stack:
        if "api-keys" in wanted.sidecars():
            stack.enter_context(_running_keys_reader(wanted, folder))
        beside = None
        if wanted.routes():
            beside, address = stack.enter_context(_running_model_router(wanted, folder))
            places = {**places, "127.0.0.1": [address]}
        _place_all(whole, places)
        envoy = stack.enter_context(started_envoy(whole, folder, concurrency=wanted.concurrency()))
        yield replace(envoy, model_router=beside)


@contextmanager
def _running_model_router(wanted: Wanted, folder: Path) -> Iterator[tuple[Process, tuple[str, int]]]:
    """What reads models beside it, with the arguments that it has in its pod."""
    port, health = free_ports(2)
    container = wanted.sidecars()["model-router"]
    command = [sys.executable, "-m", "kvtier_scorer.picker", *container["args"]]
    places = {"--grpc-port": port, "--grpc-health-port": health}
    for option, number in places.items():
        command[command.index(option) + 1] = str(number)
    process = Process(command, folder / "model-router.log")
    try:
        process.wait_until(lambda: is_serving(f"127.0.0.1:{health}"))
        yield process, ("127.0.0.1", port)
    finally:
        process.stop()


@contextmanager
def _running_keys_reader(wanted: Wanted, folder: Path) -> Iterator[None]:
    """What reads the mounted Secret beside it, with the command that it has in its pod."""
    container = wanted.sidecars()["api-keys"]
    command = [sys.executable, *container["command"][1:], *container["args"]]
    places = {"--folder": folder / "secret-keys", "--file": folder / "keys.json"}
    for option, place in places.items():
        command[command.index(option) + 1] = str(place)
    process = Process(command, folder / "api-keys.log")
    try:
        process.wait_until(places["--file"].exists)
        yield
    finally:
        process.stop()


def _place_all(whole: dict[str, Any], places: Places) -> None:
    resources = whole["static_resources"]
    for listener in (whole["admin"], *resources["listeners"]):
        listener["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": 0}
    for cluster in resources["clusters"]:
        if "load_assignment" in cluster:
            _place(cluster["load_assignment"]["endpoints"][0], places)


def _place(group: dict[str, Any], places: Places) -> None:
    [one] = group["lb_endpoints"]
    found = places[one["endpoint"]["address"]["socket_address"]["address"]]
    group["lb_endpoints"] = [
        {"endpoint": {"address": {"socket_address": {"address": ip, "port_value": port}}}}
        for ip, port in found
    ]


def certificate_of(folder: Path) -> Path:
    """A new certificate, signed by itself, mounted as `certificate`."""
    (made := folder / "made").mkdir(parents=True, exist_ok=True)
    make_certificate(made)
    mount(folder / "certificate", {name: (made / name).read_text() for name in ("tls.crt", "tls.key")})
    return folder / "certificate" / "tls.crt"


def mount(mounted: Path, entries: Mapping[str, str]) -> None:
    """Entries of a Secret, placed as a kubelet places them: by one change of a link."""
    mounted.mkdir(parents=True, exist_ok=True)
    made = mounted / f"..{sum(not old.is_symlink() for old in mounted.iterdir())}"
    made.mkdir()
    for name, text in entries.items():
        (made / name).write_text(text)
        if not (mounted / name).is_symlink():
            (mounted / name).symlink_to(f"..data/{name}")
    for link in mounted.iterdir():
        if link.is_symlink() and link.name != "..data" and link.name not in entries:
            link.unlink()
    new = mounted / "..new"
    new.symlink_to(made.name)
    new.rename(mounted / "..data")
