"""Shared memory and volumes, in a mount namespace of the doctor's own: nothing is mounted outside."""

from pathlib import Path

import pytest
from tests.node.doctor.conftest import Examine

from kvtier_operator.planning.pod.demands import Demands, VolumeDemand

MIB = 1 << 20


def mounted(kind: str, options: str, at: Path | str, then: str = ":") -> tuple[str, ...]:
    script = f'mount -t {kind} -o {options} kvtier-test {at} && {then} && exec "$@"'
    return "unshare", "--mount", "sh", "-c", script, "sh"


def volume(path: Path, size: int) -> Demands:
    return Demands(1, 0, volumes=(VolumeDemand(str(path), size, direct_io=True),))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "volume"
    made.mkdir()
    return made


def test_shared_memory_of_another_size(examine: Examine) -> None:
    below = mounted("tmpfs", "size=2m", "/dev/shm")  # noqa: S108 - mounted over, in a namespace
    assert examine(Demands(1, 2 * MIB), *below).status == 0
    found = examine(Demands(1, 3 * MIB), *below)
    assert found.status == 1
    assert found.message.startswith("shared-memory: 3 MiB of /dev/shm needed, its size is 2 MiB; ")


def test_a_volume_that_has_room_is_left_as_it_was(examine: Examine, folder: Path) -> None:
    found = examine(volume(folder, MIB))
    assert found.status == 0
    assert found.lines[-1].startswith(f"Pass  disk {folder}: 1 MiB needed, ")
    assert list(folder.iterdir()) == []


def test_a_volume_that_is_too_small(examine: Examine, folder: Path) -> None:
    found = examine(volume(folder, 5 * MIB), *mounted("tmpfs", "size=4m", folder))
    assert found.status == 1
    assert "5 MiB needed, 4 MiB free on node gpu-3; lower spec.tiers.disk.capacity by 1 MiB" in found.message


def test_what_an_earlier_start_left_is_the_tier_s_own(examine: Examine, folder: Path) -> None:
    fill = f"dd if=/dev/zero of={folder}/block bs=1M count=3 status=none"
    found = examine(volume(folder, 4 * MIB), *mounted("tmpfs", "size=4m", folder, fill))
    assert found.status == 0
    assert "1 MiB free and 3 MiB of its own" in found.lines[-1]


def test_a_volume_that_is_read_only(examine: Examine, folder: Path) -> None:
    found = examine(volume(folder, MIB), *mounted("tmpfs", "ro,size=4m", folder))
    assert found.status == 1
    assert "not writable on node gpu-3: Read-only file system" in found.message


def test_a_volume_of_someone_else(examine: Examine, folder: Path) -> None:
    folder.chmod(0o755)
    nobody = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
    own = f"chown 12345 {folder}"
    found = examine(volume(folder, MIB), *mounted("tmpfs", "size=4m,mode=755", folder, own), *nobody)
    assert found.status == 1
    assert "Permission denied" in found.message


def test_a_file_system_without_direct_io(examine: Examine, folder: Path) -> None:
    found = examine(volume(folder, 0), *mounted("ramfs", "mode=777", folder))
    assert found.status == 0
    assert "O_DIRECT does not work there (Invalid argument)" in found.message


def test_several_failures_are_one_line(examine: Examine, folder: Path) -> None:
    missing = VolumeDemand(str(folder / "none"), MIB, direct_io=False)
    found = examine(Demands(1 << 60, 0, volumes=(missing,)))
    assert found.status == 1
    assert len(found.message.splitlines()) == 1
    assert "memory: " in found.message
    assert "No such file or directory" in found.message
