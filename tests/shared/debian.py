"""Debian's packages that tests need; installed where that can be done."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.cluster.harness.programs.tools import MissingToolError, Say

_APT_GET: Final = "apt-get"
_LOCK_S: Final = 600  # another test may be installing


def missing_packages(packages: Mapping[str, str]) -> list[str]:
    """Names of packages that this machine has not.

    Args:
        packages: What shows that a package is there, by its name: a command, or a file.
    """
    return [name for name, proof in packages.items() if not _is_there(proof)]


def can_install() -> bool:
    """Whether packages can be installed here."""
    return os.geteuid() == 0 and shutil.which(_APT_GET) is not None


def install_packages(packages: Mapping[str, str], say: Say) -> None:
    """Install what is missing; services that a package brings are not started.

    Args:
        packages: As of `missing_packages`.
        say: Tells a person what takes time.

    Raises:
        MissingToolError: apt-get could not.
    """
    if not (missing := missing_packages(packages)):
        return
    names = " ".join(missing)
    say(f"installing Debian packages: {names}")
    for command in (("update",), ("install", "--yes", "--no-install-recommends", *missing)):
        done = subprocess.run(  # noqa: S603 - our own command
            [_APT_GET, "--quiet", "--quiet", f"--option=DPkg::Lock::Timeout={_LOCK_S}", *command],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        # A repository that cannot be reached may be one that has none of these.
        if done.returncode and command[0] == "install":
            last = done.stderr.strip().splitlines()[-3:]
            raise MissingToolError(f"apt-get could not install {names}: {' | '.join(last)}")
    if missing := missing_packages(packages):
        raise MissingToolError(f"apt-get installed packages without what is looked for: {' '.join(missing)}")


def _is_there(proof: str) -> bool:
    return Path(proof).exists() if proof.startswith("/") else shutil.which(proof) is not None
