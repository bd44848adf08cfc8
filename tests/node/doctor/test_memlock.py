from tests.node.doctor.conftest import Examine

from kvtier_operator.planning.pod.demands import Demands, MemlockDemand

MIB, GIB, TIB = 1 << 20, 1 << 30, 1 << 40
# root without the capability, as a container that does not add it; util-linux, setpriv(1)
WITHOUT_IPC_LOCK = ("setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock")


def limited(size: str) -> tuple[str, ...]:
    return "prlimit", f"--memlock={size}:{size}"


def lock(size: int, *, required: bool = True) -> Demands:
    return Demands(1, 0, memlock=MemlockDemand(size, required=required))


def test_a_limit_that_nothing_lifts(examine: Examine) -> None:
    below = (*limited("8388608"), *WITHOUT_IPC_LOCK)
    found = examine(lock(GIB), *below)
    assert found.status == 1
    assert found.message.startswith(
        "memlock: 1 GiB to lock in each process, RLIMIT_MEMLOCK is 8 MiB, IPC_LOCK is not effective, "
        "the kernel refused: "
    )
    assert "LimitMEMLOCK=infinity for the container runtime of node gpu-3" in found.message
    rather = examine(lock(GIB, required=False), *below)
    assert rather.status == 0
    assert "the tier stays unlocked (policy Prefer)" in rather.message


def test_the_capability_lifts_the_limit(examine: Examine) -> None:
    # far beyond this machine's memory: nothing of it is brought in
    found = examine(lock(TIB), *limited("65536"))
    assert found.status == 0, found.lines
    assert found.lines[-1].startswith(
        "Pass  memlock: 1 TiB to lock in each process, RLIMIT_MEMLOCK is 64 KiB"
    )


def test_a_limit_that_holds_it_just_so(examine: Examine) -> None:
    below = (*limited(str(4 * MIB)), *WITHOUT_IPC_LOCK)
    assert examine(lock(4 * MIB), *below).status == 0
    assert examine(lock(4 * MIB + 4096), *below).status == 1


def test_a_capability_of_a_user_namespace_lifts_nothing(examine: Examine) -> None:
    found = examine(lock(GIB), *limited("65536"), "unshare", "--user", "--map-root-user")
    assert found.status == 1
    assert "IPC_LOCK is effective, the kernel refused: " in found.message
    assert "hostUsers" in found.message
