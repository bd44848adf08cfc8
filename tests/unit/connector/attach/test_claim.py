"""Several servers in one pod: the first has the tier, with all processes that it starts, until it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvtier_connector.attach.claim import claim_tier

_SERVER = """\
import os, subprocess, sys
from pathlib import Path
from kvtier_connector.attach.claim import claim_tier
print(claim_tier([Path("/nowhere"), Path(sys.argv[1])]), flush=True)
if pid := os.fork():
    os.waitpid(pid, 0)
else:
    print(claim_tier([Path("/nowhere"), Path(sys.argv[1])]), flush=True)
    os._exit(0)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _environment_of_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())


def test_the_first_has_it_and_what_it_starts_until_it_ends(tmp_path: Path) -> None:
    with subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-c", _SERVER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stdout
        assert [first.stdout.readline() for _ in range(2)] == ["True\n", "True\n"]
        assert not claim_tier([tmp_path])
        first.kill()
    assert claim_tier([tmp_path])
    assert claim_tier([tmp_path])


def test_where_nothing_can_be_written_nothing_is_known_against_it(tmp_path: Path) -> None:
    assert claim_tier([tmp_path / "none"])
