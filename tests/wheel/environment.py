"""A Python environment with nothing in it but what a test installs, and commands typed there."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from uv import find_uv_bin

from kvtier_release.make import build_packages

CREATED_S: Final = 1_790_000_000
ROOT: Final = Path(__file__).resolve().parents[2]
_LOCK: Final = ROOT / "requirements-light.lock"
# Of the tests' own environment: what is imported must be what was installed.
_OURS: Final = ("PYTHON", "VIRTUAL_ENV", "COVERAGE", "COV_", "KVTIER_", "KUBE", "XDG_")


@dataclass(frozen=True, slots=True)
class Environment:
    """One of its own, with the Python of the tests."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Makes an empty one, without pip."""
        _uv("venv", "--python", sys.executable, folder)
        return cls(folder)

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"

    @property
    def variables(self) -> dict[str, str]:
        """What its commands get of the tests' environment variables; their home is the folder."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(_OURS)},
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
        }

    def install(self, *requirements: str) -> None:
        """Installs what is required, in the locked versions and by their hashes.

        kvtier itself stays as it is once it is there: no index has it.
        """
        _uv("pip", "install", "--python", self.python, "--constraint", _LOCK, *requirements)

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs one of its programs, in its folder, whatever comes of it."""
        program, *arguments = command
        return subprocess.run(  # noqa: S603 - our own programs
            [self.folder / "bin" / program, *arguments],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout, as a release has it."""
    build_packages(ROOT, folder, CREATED_S)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _uv(*arguments: str | Path) -> None:
    done = subprocess.run(  # noqa: S603 - uv
        [find_uv_bin(), *arguments], capture_output=True, text=True, check=False
    )
    assert not done.returncode, f"uv {' '.join(map(str, arguments))}\n{done.stderr}"
