"""The tier's folder and files are its own: links, others' things and what everybody may write are refused."""

import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.blocks import MEANING, capacity_for, request_for
from tests.unit.connector.disk.rig.tier_files import directory

from kvtier_connector.core.behind.break_even import Rates
from kvtier_connector.core.disk.files.folder import Directory, LockedFolder
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.errors import DiskError, FolderInUseError, SettingError, UnsafeFolderError

OTHER_USER = 65534
VICTIM = "what root alone may write"
NAMES = ("lock", "fingerprint", "index", "index.new", "blocks-000000")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give things to others")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tier"


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A file of somebody else; whatever the tier is led to, it is left as it is."""
    file = tmp_path / "victim"
    file.write_text(VICTIM)
    mode = file.stat().st_mode
    yield file
    assert file.read_text() == VICTIM
    assert file.stat().st_mode == mode


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counted only
    yield
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def place_of(path: Path, name: str) -> Path:
    return path / name if name == "lock" else path / MEANING.folder / name


def used(path: Path) -> None:
    """Have an engine use the folder as far as every file is written."""
    store = Store.open(request_for(path, capacity_for(4)))
    try:
        store.compact(store.shape.nothing)
        store.keep_rates(Rates(1.0).text())
    finally:
        store.close()


def assert_for_the_owner_alone(path: Path) -> None:
    for each in (path, *path.rglob("*")):
        assert stat.S_IMODE(each.stat().st_mode) == (0o700 if each.is_dir() else 0o600), each


def linked(place: Path, victim: Path) -> None:
    place.symlink_to(victim)


def hard_linked(place: Path, victim: Path) -> None:
    place.hardlink_to(victim)


def fifo(place: Path, _victim: Path) -> None:
    os.mkfifo(place)


def unix_socket(place: Path, _victim: Path) -> None:
    before = Path.cwd()
    os.chdir(place.parent)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(place.name)
    finally:
        os.chdir(before)


def folder(place: Path, _victim: Path) -> None:
    place.mkdir()


def written_by_all(place: Path, _victim: Path) -> None:
    place.touch()
    place.chmod(0o666)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("plant", "what"),
    [
        (linked, "is a link, which the tier did not make: .* rm -r /"),
        (hard_linked, "is a file of 2 names, which the tier did not make"),
        (fifo, "is a FIFO, which"),
        (unix_socket, "is a socket, which"),
        (folder, "is a folder, which"),
        (written_by_all, r"every user may write to .* \(mode 0666\).*chmod 600"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_is_planted_in_a_files_place_is_refused(
    path: Path, victim: Path, name: str, plant: Callable[[Path, Path], None], what: str
) -> None:
    used(path)
    place = place_of(path, name)
    place.unlink(missing_ok=True)
    plant(place, victim)
    with pytest.raises(UnsafeFolderError, match=rf"(?s)^disk_path: .*{place.name}.*{what}|{what}") as said:
        used(path)
    assert str(place) in str(said.value)
    assert "\n" not in str(said.value)
    place.rmdir() if place.is_dir() else place.unlink()  # the mending that the line says
    used(path)


def test_rates_of_another_are_not_read_and_what_is_planted_is_not_written(path: Path, victim: Path) -> None:
    used(path)
    namespace = path / MEANING.folder
    (namespace / "rates").unlink()
    (namespace / "rates").symlink_to(victim)
    (namespace / "rates.new").symlink_to(victim)
    store = Store.open(request_for(path, capacity_for(4)))
    assert store.rates == Rates()
    with pytest.raises(UnsafeFolderError, match=r"rates.new is a link"):
        store.keep_rates("{}")
    (namespace / "rates.new").unlink()
    store.keep_rates(Rates(2e6).text())
    assert store.rates == Rates(2e6)
    assert not (namespace / "rates").is_symlink()
    store.close()


def test_a_namespace_that_is_a_link_is_refused(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path.mkdir()
    (path / MEANING.folder).symlink_to(elsewhere)
    with pytest.raises(SettingError, match=rf"^disk_path: {path / MEANING.folder} is a link; name a folder$"):
        used(path)
    assert not list(elsewhere.iterdir())


def test_a_tier_that_is_a_link_is_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SettingError, match=rf"^disk_path: {path} is a link; name a folder$"):
        used(path)
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("below", ["", "namespace"])
def test_a_folder_that_everybody_may_write_is_refused(path: Path, below: str) -> None:
    used(path)
    where = path / MEANING.folder if below else path
    for mode in (0o777, 0o1777, 0o702):
        where.chmod(mode)
        said = rf"may write to {where} \(mode {mode:04o}\).* chmod 700 {where}, or name .*/kvtier$"
        with pytest.raises(UnsafeFolderError, match=said):
            used(path)
    where.chmod(0o700)
    used(path)


def test_below_a_volume_that_everybody_may_write_the_tier_has_its_own(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    volume.chmod(0o2777)  # an emptyDir with fsGroup
    used(volume / "kvtier")
    assert stat.S_IMODE((volume / "kvtier").stat().st_mode) & 0o777 == 0o700


def test_what_the_kubelet_gave_a_group_is_taken_back(path: Path) -> None:
    used(path)
    for each in (path, *path.rglob("*")):  # as SetVolumeOwnership does at every mount with fsGroup
        each.chmod(each.stat().st_mode | (0o2770 if each.is_dir() else 0o660))
    used(path)
    assert_for_the_owner_alone(path)


def test_what_all_could_read_is_for_the_owner_alone_again(path: Path) -> None:
    used(path)
    for each in (path, *path.rglob("*")):  # as a copy of a folder without -p, under the usual umask
        each.chmod(0o755 if each.is_dir() else 0o644)
    used(path)
    assert_for_the_owner_alone(path)


@as_root
def test_a_lock_that_all_could_read_is_nobody_elses_to_hold(path: Path) -> None:
    used(path)
    path.chmod(0o755)
    (path / "lock").chmod(0o644)
    LockedFolder.take(path, "x").close()
    path.chmod(0o755)  # so that it is the file itself that keeps the other out
    tried = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", f"import os; os.setuid({OTHER_USER}); os.open('lock', os.O_RDONLY)"],
        cwd=path,  # whatever is above
        check=False,
        capture_output=True,
        text=True,
    )
    assert "PermissionError: [Errno 13] Permission denied: 'lock'" in tried.stderr


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o177])
def test_modes_do_not_follow_the_umask(path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        used(path)
    finally:
        os.umask(before)
    assert_for_the_owner_alone(path)


@as_root
@pytest.mark.parametrize("name", ["", "namespace", *NAMES])
def test_what_belongs_to_another_user_is_refused(path: Path, name: str) -> None:
    used(path)
    place = {"": path, "namespace": path / MEANING.folder}.get(name) or place_of(path, name)
    if not place.exists():
        place.touch()
    os.chown(place, OTHER_USER, -1)
    said = rf"{place} belongs to user {OTHER_USER} and the engine is user 0: (chown -R 0|rm) {place}, or name"
    with pytest.raises(UnsafeFolderError, match=said):
        used(path)
    os.chown(place, 0, -1)
    used(path)


@as_root
def test_a_link_on_the_way_is_followed_if_root_made_it_and_not_if_another_did(tmp_path: Path) -> None:
    (tmp_path / "disks" / "nvme0").mkdir(parents=True)
    (tmp_path / "way").symlink_to("disks/../disks")
    (tmp_path / "disks" / "current").symlink_to(tmp_path / "disks" / "nvme0")
    through = tmp_path / "way" / "current" / "new" / "tier"
    used(through)
    assert (tmp_path / "disks" / "nvme0" / "new" / "tier" / "lock").exists()
    os.chown(tmp_path / "way", OTHER_USER, -1, follow_symlinks=False)
    with pytest.raises(
        UnsafeFolderError, match=rf"'way' is a link of user {OTHER_USER}, who may let it point"
    ):
        used(through)


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UnsafeFolderError, match="more than 40 links on the way"):
        used(tmp_path / "a" / "tier")


def test_a_folder_that_is_swapped_later_is_not_written_to(path: Path, tmp_path: Path) -> None:
    store = Store.open(request_for(path, capacity_for(4)))
    path.rename(tmp_path / "ours")
    (tmp_path / "theirs" / MEANING.folder).mkdir(parents=True)
    path.symlink_to(tmp_path / "theirs")
    store.compact(store.shape.nothing)
    store.keep_rates("{}")
    assert not list((tmp_path / "theirs" / MEANING.folder).iterdir())
    assert (tmp_path / "ours" / MEANING.folder / "rates").exists()
    store.close()


def test_a_strangers_namespace_that_leads_elsewhere_is_not_emptied(path: Path, victim: Path) -> None:
    path.mkdir()
    (path / "0123456789abcdef").symlink_to(victim.parent)
    (path / "fedcba9876543210").mkdir()
    (path / "fedcba9876543210" / "index").symlink_to(victim)
    used(path)
    assert (path / "0123456789abcdef").is_symlink()
    assert (path / "fedcba9876543210" / "index").is_symlink()


def test_no_more_of_a_file_is_read_than_asked_for(path: Path) -> None:
    with directory(path) as folder:
        folder.write("index", b"0123456789")
        assert folder.read("index", 4) == b"0123"
        assert folder.read("none", 4) == b""


def test_an_index_of_a_petabyte_is_not_read(path: Path) -> None:
    used(path)
    index = path / MEANING.folder / "index"
    os.truncate(index, 1 << 43)  # takes no space
    used(path)
    assert index.stat().st_size < 1 << 20


HOLDER = """
import sys
from pathlib import Path
from kvtier_connector.core.disk.files.folder import LockedFolder
folder = LockedFolder.take(Path(sys.argv[1]), "engine qwen3-0 (process 7)")
print("taken", flush=True)
sys.stdin.read()
"""


def test_a_second_engine_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "tier"
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "taken\n"
        with pytest.raises(FolderInUseError, match=r"is in use by engine qwen3-0 \(process 7\); give every"):
            LockedFolder.take(path, "another")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    LockedFolder.take(path, "b").close()
    assert (path / "lock").read_text() == "b"
    assert path.stat().st_mode & 0o777 == 0o700
    assert (path / "lock").stat().st_mode & 0o777 == 0o600
    LockedFolder.take(path, "c").close()


@pytest.mark.parametrize("below", ["", "tier"])
def test_a_file_in_its_place_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingError, match=r"^disk_path: .*file.* is a file; name a folder$"):
        LockedFolder.take(tmp_path / "file" / below, "a")


@pytest.mark.parametrize(("name", "command"), [("", "chown -R"), ("tier", "install -d -o")])
def test_a_folder_that_may_not_be_written_is_named_with_what_mends_it(name: str, command: str) -> None:
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as above:  # which others may pass, as a volume's
        Path(above).chmod(0o755)
        closed = Path(above, "closed")
        closed.mkdir(mode=0o500)
        if user == 0:  # who may write everything
            os.seteuid(65534)
        elif not name:
            closed.chmod(0)
        other, path = os.geteuid(), closed / name
        try:
            with pytest.raises(
                SettingError,
                match=rf"no permission to write {path} as user {other}; as root: {command} {other} .*{path},",
            ):
                LockedFolder.take(path, "a")
        finally:
            os.seteuid(user)


@pytest.mark.parametrize("instead", ["nothing", "another"])
def test_a_folder_that_is_deleted_underneath_is_noticed(tmp_path: Path, instead: str) -> None:
    folder = LockedFolder.take(tmp_path / "tier", "a")
    folder.check()
    (tmp_path / "tier").rename(tmp_path / "elsewhere")
    if instead == "another":
        LockedFolder.take(tmp_path / "tier", "b").close()
    with pytest.raises(DiskError, match=r"tier: (No such file|the folder has been replaced by another)"):
        folder.check()
    folder.close()


def test_the_holder_is_told_in_one_line_of_what_can_be_shown(tmp_path: Path) -> None:
    LockedFolder.take(tmp_path, "x").close()
    (tmp_path / "lock").write_bytes(b"a\n\x1b[2Jb\xff")
    holder = Directory.open(tmp_path)
    descriptor = holder.file("lock")
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(FolderInUseError, match="in use by") as said:
        LockedFolder.take(tmp_path, "y")
    os.close(descriptor)
    holder.close()
    assert str(said.value).isprintable()
