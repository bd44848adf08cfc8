"""A picker as a process of its own, and what of it has to be as before whatever it was sent."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
import pytest
from tests.picker.flavours.inputs import EXAMPLE
from tests.picker.fuzz.inputs import GOOD
from tests.picker.harness.client import get
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.own import Own, OwnStart, running_own
from tests.unit.scorer.picker.gateway.protocol.gateway import destination_of, kinds

from kvtier_scorer.config.flavors import picker_config

PROCESS: Final = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
_KIB: Final = 1024
_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Target:
    """What is fuzzed."""

    own: Own
    fleet: Fleet

    @property
    def address(self) -> str:
        """Of its ext_proc service."""
        return f"127.0.0.1:{self.own.port}"

    @property
    def memory_bytes(self) -> int:
        """Its resident memory now."""
        status = Path(f"/proc/{self.own.process.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1]) * _KIB

    @property
    def open_streams(self) -> float:
        """Calls that it believes to be open."""
        lines = get(f"{self.own.http}/metrics").body.decode().splitlines()
        [value] = [line.split()[1] for line in lines if line.startswith("kvtier_picker_open_streams ")]
        return float(value)

    @property
    def log(self) -> str:
        """What it has said."""
        return self.own.process.log.read_text()

    def check_good_request(self) -> None:
        """A request as it should be gets an endpoint."""
        with grpc.insecure_channel(self.address) as channel:
            process: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(PROCESS)
            told = list(process(iter(GOOD), timeout=_TIMEOUT_S))
        assert kinds(told) == ["request_headers", "request_body"]
        assert destination_of(told[0]) in self.fleet.addresses

    def check_unharmed(self) -> None:
        """It serves, has no open stream, and nothing went wrong that it did not foresee."""
        self.check_good_request()
        self.own.process.wait_until(lambda: self.open_streams == 0)
        log = self.log
        assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:3000]
        errors = [line for line in log.splitlines() if " ERROR " in line]
        assert all("the gateway's request_body_mode is" in line for line in errors), errors


@pytest.fixture(scope="module")
def target(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A picker of this module's tests."""
    start = OwnStart(picker_config("builtin", EXAMPLE).text)
    with running_own(start, fleet.pods, tmp_path_factory.mktemp("picker")) as own:
        yield Target(own, fleet)
