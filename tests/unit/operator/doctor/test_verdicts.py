"""What each check says of what was found: one line with what was needed, what there is and what to do."""

from dataclasses import replace

import pytest

from kvtier_operator.doctor import examine as examining
from kvtier_operator.doctor.hugepages import HugepagesFacts, PageCosts, huge_pages_unused, hugepages
from kvtier_operator.doctor.memlock import MemlockFacts, memlock
from kvtier_operator.doctor.memory import MemoryFacts, SharedMemoryFacts, memory, shared_memory
from kvtier_operator.doctor.verdict import Place, Severity, Verdict
from kvtier_operator.doctor.volume import VolumeFacts, volume
from kvtier_operator.planning.pod.demands import Demands, HugepagesDemand, MemlockDemand, VolumeDemand

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PASS, WARN, FAIL = Severity.PASS, Severity.WARN, Severity.FAIL
POD = Place("node gpu-3", in_pod=True)
HERE = Place("this machine", in_pod=False)
PAGES = HugepagesDemand(page_bytes=2 * MIB, pages=1024, required=True)
LOCK = MemlockDemand(bytes=GIB, required=True)
DISK = VolumeDemand("/disk/0", GIB, direct_io=True)
REFUSED = "Cannot allocate memory"


def says(verdict: Verdict, severity: Severity, *words: str) -> None:
    assert verdict.severity is severity, verdict
    assert "\n" not in verdict.message
    for word in words:
        assert word in verdict.message, verdict
    if severity is FAIL:
        assert "; " in verdict.message  # what to do


@pytest.mark.parametrize(
    ("place", "limit", "severity", "words"),
    [
        (POD, GIB, PASS, ["1 GiB needed, 1 GiB allowed"]),
        (POD, GIB - 1, FAIL, ["1 GiB needed", "LimitRange"]),
        (HERE, GIB // 2, FAIL, ["512 MiB allowed", "lower spec.tiers.cpu.capacity by 512 MiB"]),
    ],
)
def test_memory(place: Place, limit: int, severity: Severity, words: list[str]) -> None:
    says(memory(GIB, MemoryFacts(limit, "the control group's limit"), place), severity, *words)


def test_what_is_available_now_is_said_of_a_shared_machine() -> None:
    facts = MemoryFacts(2 * GIB, "physical memory less 6 GiB of huge pages", 6 * GIB, GIB // 2)
    says(memory(GIB, facts, HERE), PASS, "less 6 GiB of huge pages), 512 MiB of it available now")
    assert "available" not in memory(GIB, facts, POD).message


@pytest.mark.parametrize(("free", "ordinary"), [(0, 4 * GIB), (512, 3 * GIB), (4096, 2 * GIB)])
def test_a_tier_that_prefers_huge_pages_takes_the_free_ones_first(
    free: int, ordinary: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = HugepagesDemand(2 * MIB, 1024, required=False)
    facts = HugepagesFacts("", free, None)
    monkeypatch.setattr(examining, "probe_hugepages", lambda _: facts)
    verdicts = examining.examine(Demands(4 * GIB, 0, hugepages=wanted), HERE)
    assert f"{ordinary // GIB} GiB needed" in next(verdicts).message


@pytest.mark.parametrize(
    ("place", "total", "free", "severity", "words"),
    [
        (POD, GIB, 0, PASS, ["1 GiB of /dev/shm needed, its size is 1 GiB"]),
        (POD, 64 * MIB, 64 * MIB, FAIL, ["its size is 64 MiB", "sizeLimit"]),
        (HERE, 2 * GIB, GIB, PASS, ["1 GiB free"]),
        (HERE, 2 * GIB, MIB, FAIL, ["1 MiB free", "remount"]),
    ],
)
def test_shared_memory(place: Place, total: int, free: int, severity: Severity, words: list[str]) -> None:
    says(shared_memory(GIB, SharedMemoryFacts(total, free), place), severity, *words)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            HugepagesFacts(refusal="", free_pages=4096, limit_bytes=GIB),
            ["1,024 pages of 2 MiB needed (2 GiB)", "limit is 1 GiB", "requests hugepages-2Mi: 2Gi"],
        ),
        (
            HugepagesFacts(refusal=REFUSED, free_pages=1000, limit_bytes=2 * GIB),
            [
                "1,000 free on node gpu-3",
                "reserve 24 more there (nr_hugepages of that size, then restart the",
            ],
        ),
        (HugepagesFacts(refusal=REFUSED, free_pages=None, limit_bytes=None), ["no pages of that size"]),
        (
            HugepagesFacts(refusal=REFUSED, free_pages=2048, limit_bytes=None),
            ["2,048 are free on node gpu-3, but the kernel refused: Cannot allocate memory", "NUMA"],
        ),
    ],
)
def test_huge_pages_that_lack(found: HugepagesFacts, words: list[str]) -> None:
    says(hugepages(PAGES, found, POD), FAIL, *words, "or set spec.tiers.cpu.hugepages.policy to Prefer")
    says(
        hugepages(replace(PAGES, required=False), found, POD), WARN, words[0], "falls back to ordinary pages"
    )


@pytest.mark.parametrize("limit", [None, 2 * GIB])
def test_huge_pages_that_are_there(limit: int | None) -> None:
    says(hugepages(PAGES, HugepagesFacts("", 1024, limit), POD), PASS, "1,024 pages of 2 MiB needed")


COSTS = PageCosts(ordinary_s=0.5, huge_s=0.125, page_bytes=2 * MIB, free_pages=8192)


def test_what_huge_pages_gain_is_told_with_them() -> None:
    found = HugepagesFacts("", 1024, None, COSTS)
    gain = "taking and locking 2 GiB takes 0.2 s with them and 1.0 s with ordinary pages"
    says(hugepages(PAGES, found, POD), PASS, gain, "(0.12 and 0.50 s/GiB, measured here)")


def test_huge_pages_that_lie_idle_are_told_of() -> None:
    told = huge_pages_unused(16 * GIB, COSTS, POD)
    assert told is not None
    says(told, PASS, "8,192 of 2 MiB are free on node gpu-3", "2.0 s with them and 8.0 s", "policy Prefer")


@pytest.mark.parametrize(
    ("size_bytes", "costs"),
    [
        (17 * GIB, COSTS),  # not enough of them
        (2 * GIB, COSTS),  # nobody would notice
        (16 * GIB, replace(COSTS, huge_s=None)),
        (16 * GIB, replace(COSTS, huge_s=0.5)),
    ],
)
def test_huge_pages_that_would_gain_nothing(size_bytes: int, costs: PageCosts) -> None:
    assert huge_pages_unused(size_bytes, costs, POD) is None


@pytest.mark.parametrize(
    ("found", "place", "words"),
    [
        (
            MemlockFacts(REFUSED, 64 * KIB, ipc_lock=False),
            POD,
            [
                "1 GiB to lock in each process, RLIMIT_MEMLOCK is 64 KiB, IPC_LOCK is not effective",
                "LimitMEMLOCK=infinity for the container runtime of node gpu-3",
            ],
        ),
        (MemlockFacts(REFUSED, 64 * KIB, ipc_lock=True), POD, ["IPC_LOCK is effective", "hostUsers"]),
        (MemlockFacts(REFUSED, 8 * MIB, ipc_lock=False), HERE, ["8 MiB", "ulimit -l"]),
    ],
)
def test_memory_that_cannot_be_locked(found: MemlockFacts, place: Place, words: list[str]) -> None:
    says(memlock(LOCK, found, place), FAIL, *words, "or set spec.tiers.cpu.memlock.policy to Prefer")
    says(memlock(replace(LOCK, required=False), found, place), WARN, words[0], "stays unlocked")


def test_memory_that_can_be_locked() -> None:
    says(memlock(LOCK, MemlockFacts("", None, ipc_lock=False), POD), PASS, "RLIMIT_MEMLOCK is unlimited")
    nothing = MemlockDemand(bytes=0, required=True)
    says(memlock(nothing, MemlockFacts("", 0, ipc_lock=False), POD), PASS, "never swapped")


@pytest.mark.parametrize(
    ("found", "severity", "words"),
    [
        (VolumeFacts("", GIB, 0, ""), PASS, ["1 GiB needed, 1 GiB free on node gpu-3"]),
        (VolumeFacts("", 0, GIB, ""), PASS, ["0 B free and 1 GiB of its own"]),
        (VolumeFacts("", MIB, MIB, ""), FAIL, ["lower spec.tiers.disk.capacity by 1,022 MiB"]),
        (VolumeFacts("Permission denied", 0, 0, ""), FAIL, ["node gpu-3: Permission denied", "fsGroup"]),
        (VolumeFacts("", GIB, 0, "Invalid argument"), WARN, ["O_DIRECT", "Invalid argument", "directIO"]),
    ],
)
def test_volume(found: VolumeFacts, severity: Severity, words: list[str]) -> None:
    verdict = volume(DISK, found, POD)
    says(verdict, severity, *words)
    assert verdict.check == "disk /disk/0"
