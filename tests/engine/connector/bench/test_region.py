"""The command's end while it has taken huge pages."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.shared.hugepages import POOL, free_pages
from tests.shared.waiting import eventually

pytestmark = pytest.mark.engine


def test_a_benchmark_that_is_ended_puts_the_pool_back(
    hugepage_pool: Callable[[int], None], tmp_path: Path
) -> None:
    hugepage_pool(1)
    before = POOL.read_text()
    kvtier, out = Path(sys.executable).with_name("kvtier"), tmp_path / "connector.json"
    command = [str(kvtier), "bench", "connector", "--only", "region", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as bench:  # noqa: S603 - our own command
        eventually(lambda: POOL.read_text() != before, "larger pool")
        bench.terminate()
        assert bench.wait(60) == 128 + signal.SIGTERM
    assert (POOL.read_text(), free_pages()) == (before, 1)
