"""An engine killed at any moment: what the next one finds is right, and is all that was reported stored."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.connector.disk import crash_child
from tests.unit.connector.disk.rig.blocks import MEANING, content_of, number_of
from tests.unit.connector.disk.rig.rig import rig_in

import kvtier_connector
from kvtier_connector import config as config_module
from kvtier_connector.core.disk.files import store as store_module

MOST_NOTED_BYTES = 16 << 10
"""Of what an engine writes down before it is killed: some 1,200 lines."""
LONGEST_S, LOOK_S = 60.0, 0.0005
TREES = (Path(__file__).parents[4], Path(kvtier_connector.__file__).parents[1])
"""Where this process has the tests and the connector from: the child's must be the same."""


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Callable[[Path, int, int], list[tuple[str, int, int]]]]:
    """Give a function that runs an engine, kills it once it wrote so much down, and returns what it wrote."""
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, crash_child.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, TREES))},
    ) as maker:
        assert maker.stdin
        assert maker.stdout
        lines, answers = maker.stdin, maker.stdout

        def run(path: Path, seed: int, after_bytes: int) -> list[tuple[str, int, int]]:
            log = tmp_path / "log"
            log.unlink(missing_ok=True)
            print(path, log, seed, file=lines, flush=True)
            child = int(answers.readline())
            _wait_for(log, after_bytes)
            os.kill(child, signal.SIGKILL)
            print(file=lines, flush=True)
            assert answers.readline() == "ended\n"
            noted = log.read_text().splitlines(keepends=True) if log.exists() else []
            whole = (line.split() for line in noted if line.endswith("\n"))
            return [(what, int(slot), int(number)) for what, slot, number in whole]

        yield run
        lines.close()


def _wait_for(log: Path, size_bytes: int) -> None:
    deadline = time.monotonic() + LONGEST_S
    while (log.stat().st_size if log.exists() else 0) < size_bytes:
        assert time.monotonic() < deadline, f"{log} has not grown to {size_bytes} bytes"
        time.sleep(LOOK_S)


@pytest.mark.parametrize("kills", [12, pytest.param(100, marks=pytest.mark.long)])
def test_an_engine_killed_at_any_moment_loses_nothing_and_finds_nothing_wrong(
    tmp_path: Path,
    kills: int,
    killed: Callable[[Path, int, int], list[tuple[str, int, int]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (store_module, config_module):
        monkeypatch.setattr(module, "DISK_SPARE_BYTES", 48 << 10)
    path = tmp_path / "tier"
    chance = random.Random(kills)  # noqa: S311 - which moments does not matter
    there = dict[int, int]()  # what is known to lie in each slot
    reported = found = lost = corrupt = wrong = compacted = 0
    for kill in range(kills):
        index = path / MEANING.folder / "index"
        before = index.stat().st_ino if index.exists() else 0
        for what, slot, number in killed(path, kill, chance.randrange(MOST_NOTED_BYTES)):
            there.pop(slot, None)
            if what == crash_child.STORED:
                there[slot] = number
                reported += 1
        compacted += index.exists() and index.stat().st_ino != before
        with rig_in(path, crash_child.SLOTS, memory_slots=crash_child.SLOTS) as rig:
            slots, keys = rig.store.index.rows(0, crash_child.SLOTS)
            held = dict(zip(slots.tolist(), (number_of(key.tobytes()) for key in keys), strict=True))
            loaded = rig.loaded(held.values())
        wrong += sum(content != content_of(number) for number, content in loaded.items())
        found += len(loaded)
        corrupt += len(held) - len(loaded)
        lost += sum(number not in loaded for number in there.values())
        there = {slot: number for slot, number in held.items() if number in loaded}
    print(  # noqa: T201 - figures, seen with -s
        f"{kills} kills, {compacted} journals written anew: {reported} blocks reported stored, "
        f"{found} found, {lost} lost, {corrupt} found corrupt, {wrong} wrong"
    )
    assert (lost, wrong) == (0, 0)
    assert found > kills * 10
    assert compacted
