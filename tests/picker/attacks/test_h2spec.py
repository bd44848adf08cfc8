"""h2spec on what we serve, beside the same on a bare grpc.aio server: no case is ours alone."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest
from tests.cluster.harness.programs.tools import Say, program
from tests.picker.attacks.rendered import rendered
from tests.picker.attacks.stage import bare_server
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.own import OwnStart, running_own

pytestmark = pytest.mark.long
_CASES: Final = 140
"""It has more; a server that cannot be reached has none."""


@dataclass(frozen=True, slots=True)
class Cases:
    """What h2spec found, by the cases' names.

    Attributes:
        count: Of all cases.
        failed: That the server did not stand.
        skipped: That it gave no occasion for: grpcio by itself, say, tells no limit of streams to exceed.
    """

    count: int
    failed: set[str]
    skipped: set[str]


def cases(h2spec: Path, port: int, report: Path) -> Cases:
    """Runs them all."""
    subprocess.run(  # noqa: S603 - our own command
        [h2spec, "--port", str(port), "--junit-report", report], check=False, stdout=subprocess.DEVNULL
    )
    found = list(ET.parse(report).iter("testcase"))  # noqa: S314 - h2spec's own

    def those(*kinds: str) -> set[str]:
        having = [case for case in found if any(case.find(kind) is not None for kind in kinds)]
        return {f"{case.get('package')}: {case.get('classname')}" for case in having}

    return Cases(len(found), those("failure", "error"), those("skipped"))


def test_we_fail_no_case_that_grpcio_passes(fleet: Fleet, tmp_path: Path, say: Say) -> None:
    h2spec = program("h2spec", say)
    start = OwnStart(rendered().config)
    with running_own(start, fleet.pods, tmp_path) as own, bare_server() as bare, ThreadPoolExecutor() as both:
        ports = {"ours.xml": own.port, "grpcio.xml": bare.target.port}
        ours, grpcio = both.map(lambda each: cases(h2spec, each[1], tmp_path / each[0]), ports.items())
    assert ours.count == grpcio.count > _CASES
    say(f"h2spec: {ours.count} cases; the picker fails {len(ours.failed)}, grpcio {len(grpcio.failed)}")
    ours_alone = ours.failed - grpcio.failed - grpcio.skipped
    assert not ours_alone, sorted(ours_alone)
