"""A tier's folder has one engine at a time, and says which."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kvtier_connector.core.disk.files.folder import Directory, LockedFolder
from kvtier_connector.errors import DiskError, FolderInUseError, SettingError

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
