"""Debian's packages of what a node and its images are made with; installed where that can be done."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.cluster.harness.programs.tools import MissingToolError, Say

# What shows that a package is there: a command, or a file.
_PACKAGES: Final = {
    "containerd": "containerd",
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/ptp",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "iproute2": "ip",
    "util-linux": "nsenter",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
}


def missing_packages() -> list[str]:
    """Names of packages that this machine has not."""
    return [name for name, proof in _PACKAGES.items() if not _is_there(proof)]


def install_packages(say: Say) -> None:
    """Installs what is missing; services that a package brings are not started.

    Raises:
        MissingToolError: apt-get could not.
    """
    if not (missing := missing_packages()):
        return
    say(f"installing Debian packages for the node: {' '.join(missing)}")
    for command in (("update",), ("install", "--yes", "--no-install-recommends", *missing)):
        done = subprocess.run(  # noqa: S603 - our own command
            ["apt-get", "--quiet", "--quiet", *command],  # noqa: S607 - the machine's own
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        # A repository that cannot be reached may be one that has none of these.
        if done.returncode and command[0] == "install":
            last = done.stderr.strip().splitlines()[-3:]
            raise MissingToolError(f"apt-get could not install {' '.join(missing)}: {' | '.join(last)}")
    if missing := missing_packages():
        raise MissingToolError(f"apt-get installed packages without what is looked for: {' '.join(missing)}")


def _is_there(proof: str) -> bool:
    return Path(proof).exists() if proof.startswith("/") else shutil.which(proof) is not None
