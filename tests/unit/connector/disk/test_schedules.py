"""Orders, faults, clears and damage in any order: what must hold whatever happens.

Every order ends once; a block that is reported loaded has the bytes that were stored under its key since the
last clear; no slot is used by two transfers of which one writes; when all is quiet nothing is pinned, and all
memory has been given back (rig_in looks after the last three).
"""

import errno
import random
from collections import Counter
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.blocks import content_of, key_of
from tests.unit.connector.disk.rig.faulty_engine import Fail, Fault, Keep, Short
from tests.unit.connector.disk.rig.rig import Rig, found_by_the_next, rig_in
from tests.unit.connector.disk.rig.tier_files import segment

from kvtier_connector.core.disk.files.journal import Journal
from kvtier_connector.errors import DiskError

SLOTS = 12
MEMORY_SLOTS = 24
NUMBERS = 30
STEPS = 200
FAULTS: tuple[Fault, ...] = (
    Fail(errno.EIO),
    Fail(errno.EIO),
    Fail(errno.ENOSPC),
    Fail(errno.EROFS),
    Short(),
    Keep(),
)


class Schedule:
    """Does one thing after another to a tier, and looks at what it says."""

    def __init__(
        self, rig: Rig, path: Path, chance: random.Random, journal_fails: list[OSError], *, clears: bool
    ) -> None:
        self.rig = rig
        self.clears = clears
        self.path = path
        self.chance = chance
        self.journal_fails = journal_fails
        self.epoch = 0
        self.done = Counter[str]()
        self.loaded = 0

    def run(self) -> None:
        often = {
            self.store: 100,
            self.load: 100,
            self.look: 100,
            self.settle: 80,
            self.keep: 20,
            self.fail: 10,
            self.late: 5,
            self.clear: 5 if self.clears else 0,
            self.reset: 5 if self.clears else 0,
            self.forget: 5,
            self.damage: 5,
            self.fail_journal: 3,
            self.move_folder: 3,
        }
        for _ in range(STEPS):
            (action,) = self.chance.choices(list(often), list(often.values()))
            action()
            self.done[action.__name__] += 1
            self.check()
        self.settle()

    def check(self) -> None:
        for number, content in self.rig.arrived.items():
            assert content == content_of(number, self.epoch), f"block {number} has wrong bytes"
        self.loaded += len(self.rig.arrived)
        self.rig.arrived.clear()
        assert self.rig.tier.used <= self.rig.tier.slots
        assert max(self.rig.disk.ended.values(), default=0) <= 1

    def store(self) -> None:
        count = min(len(self.rig.free), self.chance.randrange(1, 9))
        self.rig.begin_store(self._idle(self.chance.sample(range(NUMBERS), count)), self.epoch)

    def load(self) -> None:
        held = [n for n in self._idle(range(NUMBERS)) if self.rig.tier.holds(key_of(n))]
        count = min(len(self.rig.free), len(held), self.chance.randrange(1, 9))
        if count:
            self.rig.begin_load(self.chance.sample(held, count))

    def look(self) -> None:
        now = self.rig.tier.poll()
        if now is not None:
            self.rig.take(now)

    def settle(self) -> None:
        """Let everything end; mostly, let the disk come back."""
        self.rig.engine.release()
        self.rig.quiet()
        while self.rig.tier.is_down and self.chance.random() < 0.95:
            self.rig.step()

    def keep(self) -> None:
        self.rig.engine.fault(lambda _io: Keep())

    def fail(self) -> None:
        faults = self.chance.choices(FAULTS, k=self.chance.randrange(1, 5))
        self.rig.engine.fault_next(*faults, write=self.chance.choice([True, False, None]))

    def late(self) -> None:
        self.rig.engine.become_late()

    def clear(self) -> None:
        self.epoch += 1
        self.rig.tier.clear()

    def reset(self) -> None:
        self.clear()
        self.forget()

    def forget(self) -> None:
        in_use = self.rig.forget_memory()
        assert not set(in_use) & set(self.rig.free)
        assert sorted([*in_use, *self.rig.free]) == list(range(MEMORY_SLOTS))

    def damage(self) -> None:
        try:
            with segment(self.path).open("r+b") as file:
                file.seek(self.chance.randrange(SLOTS * 4096))
                file.write(b"damage")
        except FileNotFoundError:
            pass  # the folder has just been moved

    def fail_journal(self) -> None:
        self.journal_fails.append(OSError(errno.ENOSPC, "the journal's disk is full"))

    def move_folder(self) -> None:
        if self.path.exists() and self.chance.random() < 0.5:
            self.path.rename(self.path.with_name(f"moved-{self.chance.random()}"))

    def _idle(self, numbers: "range | list[int]") -> list[int]:
        return [number for number in numbers if key_of(number) not in self.rig.slot_of]


def _is_where_it_was(rig: Rig) -> bool:
    """Tell whether the tier is up, and not only because it has not noticed yet that its folder was moved."""
    try:
        if rig.tier._store is not None:
            rig.tier._store.check()
    except DiskError:
        return False
    return rig.tier._store is not None


@pytest.fixture
def journal_fails(monkeypatch: pytest.MonkeyPatch) -> list[OSError]:
    """Errors that the next writes to a journal meet."""
    fails, write = list[OSError](), Journal._write

    def failing(journal: Journal, frame: bytes) -> None:
        if fails:
            raise fails.pop()
        write(journal, frame)

    monkeypatch.setattr(Journal, "_write", failing)
    return fails


@pytest.mark.parametrize("joined_blocks", [1, 3])
@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(12, 60))]
)
def test_any_schedule(
    tmp_path: Path,
    seed: int,
    joined_blocks: int,
    journal_fails: list[OSError],
) -> None:
    path = tmp_path / "tier"
    with rig_in(path, SLOTS, memory_slots=MEMORY_SLOTS, joined_blocks=joined_blocks) as rig:
        chance = random.Random(seed)  # noqa: S311 - to be the same again
        schedule = Schedule(rig, path, chance, journal_fails, clears=seed % 2 == 0)
        schedule.run()
        journal_fails.clear()
        while rig.tier._uncleared or not _is_where_it_was(rig):
            rig.step()
        held = {number for number in range(NUMBERS) if rig.tier.holds(key_of(number))}
        last = rig.loaded(held)
        schedule.check()
        rig.quiet()
        assert rig.stored([99], schedule.epoch) == [99]  # it still works
    found = found_by_the_next(path, SLOTS)
    assert all(content == content_of(number, schedule.epoch) for number, content in found.items())
    if schedule.epoch:  # its weights may be others than the next start's
        assert found == {}
    else:
        assert found.keys() <= last.keys() | {99}
        assert 99 in found
    print(f"{sum(schedule.done.values())} steps, {schedule.loaded} blocks loaded, {len(found)} found after")  # noqa: T201 - figures, seen with -s
