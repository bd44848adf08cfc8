"""A cgroup of the node's own, under which the kubelet puts its pods."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from tests.shared.waiting import eventually

_ROOT: Final = Path("/sys/fs/cgroup")


@contextmanager
def own_cgroup(name: str) -> Iterator[str]:
    """A cgroup in every hierarchy; it and the pods' below it are removed afterwards.

    Yields:
        Its path as the kubelet takes it, such as `/kvtier0`.
    """
    roots = _hierarchies()
    for root in roots:
        (root / name).mkdir(exist_ok=True)
        if (root / "cgroup.subtree_control").exists():
            _delegate(root)
            _delegate(root / name)
        elif (root / "cpuset.cpus").exists():
            # Version 1 does not hand these down, and refuses processes while they are empty.
            for each in ("cpuset.cpus", "cpuset.mems"):
                (root / name / each).write_text((root / each).read_text())
    try:
        yield f"/{name}"
    finally:
        remove_cgroup(name)


def remove_cgroup(name: str) -> None:
    """Removes a cgroup and those below it, once the kernel has ended their processes."""
    for root in _hierarchies():
        eventually(partial(_remove, root / name), f"empty cgroup {root / name}")


def _hierarchies() -> list[Path]:
    """Version 2 alone is one; version 1 is one for each controller, with version 2 beside them or not."""
    if (_ROOT / "cgroup.controllers").exists():
        return [_ROOT]
    return [path for path in sorted(_ROOT.iterdir()) if path.is_dir() and not path.is_symlink()]


def _delegate(group: Path) -> None:
    """Hands all the controllers of a version 2 group to its children, where the kernel lets it."""
    for controller in (group / "cgroup.controllers").read_text().split():
        try:
            (group / "cgroup.subtree_control").write_text(f"+{controller}")
        except OSError:
            continue


def _remove(group: Path) -> bool:
    if not group.exists():
        return True
    try:
        for path in sorted(group.rglob("*/"), key=lambda path: len(path.parts), reverse=True):
            if path.is_dir():
                path.rmdir()
        group.rmdir()
    except OSError:  # the kernel is still ending its processes
        return False
    return True
