"""Whoever builds this version's packages gets the same bytes."""

import hashlib
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.wheel.environment import CREATED_S, ROOT

from kvtier_common.version import KVTIER_VERSION
from kvtier_release.make import build_packages

PARTS = (
    "operator",
    "connector",
    "scorer",
    "pyproject.toml",
    ".gitignore",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
)
PACKAGES = {f"kvtier-{KVTIER_VERSION}-py3-none-any.whl", f"kvtier-{KVTIER_VERSION}.tar.gz"}


def copied(target: Path) -> Path:
    """The sources at another place, with other times and rights."""
    target.mkdir()
    with creating(0o077):
        for name in PARTS:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(
                    source,
                    target / name,
                    copy_function=shutil.copyfile,
                    ignore=shutil.ignore_patterns("__pycache__"),  # others write there meanwhile
                )
            else:
                shutil.copyfile(source, target / name)
    return target


@contextmanager
def creating(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def built(sources: Path, target: Path) -> dict[str, str]:
    build_packages(sources, target, CREATED_S)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in target.iterdir()}


def test_two_builds_are_the_same(tmp_path: Path) -> None:
    first = built(ROOT, tmp_path / "one")
    assert first.keys() == PACKAGES
    assert built(copied(tmp_path / "sources"), tmp_path / "two") == first


def test_a_wheel_of_the_source_distribution_is_the_wheel(tmp_path: Path) -> None:
    first = built(ROOT, tmp_path / "one")
    with tarfile.open(tmp_path / "one" / f"kvtier-{KVTIER_VERSION}.tar.gz") as opened:
        opened.extractall(tmp_path, filter="data")
    wheel = next(name for name in PACKAGES if name.endswith(".whl"))
    assert built(tmp_path / f"kvtier-{KVTIER_VERSION}", tmp_path / "two")[wheel] == first[wheel]
