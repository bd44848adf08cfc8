"""The image that the others are built on: Debian with Python, made with debootstrap.

A registry build begins with a public image; the Containerfiles are the same, their BASE_IMAGE is not.
"""

import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Final

from tests.cluster.harness.images.buildah import Containerfile, build, is_built
from tests.cluster.harness.node.machine.packages import PACKAGES
from tests.cluster.harness.programs.locked import lock
from tests.cluster.harness.programs.tools import MissingToolError, Say, cache_folder
from tests.shared.debian import install_packages

# Debian's releases by the Python that they have: engines run with this machine's packages for it.
_RELEASES: Final = {(3, 11): "bookworm", (3, 13): "trixie"}
_MIRROR: Final = "http://deb.debian.org/debian"
# Python as its public image has it.
_PACKAGES: Final = ("ca-certificates", "libstdc++6", "python3", "python3-venv")


def debian_base(say: Say) -> str:
    """Name of the base image in buildah's store; it is made the first time, which takes a minute.

    Raises:
        MissingToolError: debootstrap failed, or no Debian has this machine's Python.
    """
    install_packages(PACKAGES, say)
    release = _RELEASES.get(sys.version_info[:2])
    if not release:
        have = ", ".join(f"{major}.{minor}" for major, minor in _RELEASES)
        raise MissingToolError(
            f"engines in pods need a Python that a Debian release has ({have}): see make PYTHON="
        )
    identity = sha256(" ".join((release, *_PACKAGES)).encode()).hexdigest()[:12]
    image = f"kvtier.test/base:{release}-{identity}"
    folder = cache_folder() / "images"
    with lock(folder / ".lock"):  # another test run may be making the same
        if not is_built(image):
            _make(image, release, say)
    return image


def _make(image: str, release: str, say: Say) -> None:
    say(f"making the base image with debootstrap, once: Debian {release}, {', '.join(_PACKAGES)}")
    with tempfile.TemporaryDirectory(prefix="kvtier-base-") as name:
        context = Path(name)
        done = subprocess.run(  # noqa: S603 - our own command
            [  # noqa: S607 - the machine's own
                "debootstrap",
                "--variant=minbase",
                f"--include={','.join(_PACKAGES)}",
                release,
                str(context / "root"),
                _MIRROR,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise MissingToolError(f"debootstrap failed: {' | '.join(done.stdout.splitlines()[-5:])}")
        shutil.rmtree(context / "root" / "var" / "cache" / "apt")
        (context / "root" / "usr" / "bin" / "python").symlink_to("python3")  # as Python's public image
        (context / "Containerfile").write_text("FROM scratch\nCOPY root /\n")
        build(image, Containerfile(context / "Containerfile", context, {}), say)
