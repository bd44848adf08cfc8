"""A release, and the registry that it is published to."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.harness.images.registry import Registry, running_registry
from tests.cluster.harness.programs.tools import MissingToolError, Say, program
from tests.release.command import Release
from tests.unit.release.platforms import image_of_platforms

from kvtier_release.oci import image_of_files
from kvtier_release.release import IMAGES


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory, say: Say) -> Iterator[Registry]:
    missing = ""
    try:
        program("registry", say)
    except MissingToolError as error:
        missing = str(error)
    if missing:
        pytest.fail(missing, pytrace=False)
    with running_registry(tmp_path_factory.mktemp("registry"), say) as running:
        yield running


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images that nobody would run, of the names that a release has."""
    folder = tmp_path_factory.mktemp("archives")
    for name, image in IMAGES.items():
        built = {
            platform.removeprefix("linux/"): image_of_files({name: platform.encode()}, {}, "built", 0)
            for platform in image.platforms or ("linux/amd64",)
        }
        archive = image_of_platforms(built) if image.platforms else built["amd64"]
        (folder / f"{name}.tar").write_bytes(archive)
    return folder


@pytest.fixture(scope="module")
def release(say: Say) -> Release:
    """`python -m kvtier_release` with what it needs on its path."""
    oras = program("oras", say).parent

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "kvtier_release", *arguments],
            env={**os.environ, "PATH": f"{oras}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def dist(release: Release, archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made for another registry than it is published to."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1790000000")
        done = release("make", "--registry", "elsewhere.example", "--dist", folder, "--archives", archives)
    assert not done.returncode, done.stderr
    return folder
