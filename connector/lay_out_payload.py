"""Lays out the payload: what a pod with vLLM's image is given on PYTHONPATH to have the connector.

`python3 connector/lay_out_payload.py FOLDER --architecture arm64`. It holds kvtier's two packages, the entry
point by which vLLM finds the plug-in, and what vLLM's images lack, compiled for each Python that they have.
That is in a folder of its own, behind what an image has (`kvtier_connector/__init__.py`). numba and numpy are
vLLM's own. Nothing of it is run, so any machine lays out any architecture's.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZipFile

_ROOT: Final = Path(__file__).resolve().parents[1]
_PACKAGES: Final = ("kvtier_common", "kvtier_connector")
PYTHONS: Final = ("3.10", "3.11", "3.12", "3.13")
ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
"""As images call them, and as wheels do."""
_LACKING: Final = {"amd64": ("xxhash", "liburing"), "arm64": ("xxhash",)}
"""By architecture; liburing has wheels for one, and threads take its place."""
LACKING_FOLDER: Final = "lacking"
_PLATFORMS: Final = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
_PLUGINS: Final = "vllm.general_plugins"


def lay_out(target: Path, architecture: str) -> None:
    """Write the payload for an architecture of ARCHITECTURES into a folder that is not there yet.

    pip fetches wheels by the lock file's hashes, and is told where from as ever (PIP_FIND_LINKS, say). Raises
    CalledProcessError: a wheel is not to be had, which pip has said.
    """
    lay_out_own(target)
    with TemporaryDirectory() as scratch:
        wanted = Path(scratch) / "wanted.txt"
        wanted.write_text("\n".join(map(_locked, _LACKING[architecture])))
        for python in PYTHONS:
            wheels = Path(scratch) / python
            _download(wanted, wheels, python, ARCHITECTURES[architecture])
            for wheel in wheels.glob("*.whl"):
                with ZipFile(wheel) as archive:  # compiled parts have their Python's name
                    archive.extractall(target / LACKING_FOLDER)


def lay_out_own(target: Path) -> None:
    """Write what is kvtier's of the payload into a folder that is not there yet; that fetches nothing."""
    target.mkdir(parents=True)
    for package in _PACKAGES:
        source = _ROOT / "connector" / package
        shutil.copytree(source, target / package, ignore=shutil.ignore_patterns("__pycache__"))
    _describe(target)


def size_bytes(folder: Path) -> int:
    """Return the size of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _describe(target: Path) -> None:
    """Write what `importlib.metadata` reads: of the commands of the whole distribution, none is here."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    source = (_ROOT / project["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    match = re.search(project["tool"]["hatch"]["version"]["pattern"], source, re.MULTILINE)
    if match is None:
        raise LookupError(f"{project['tool']['hatch']['version']['path']} has no version")
    about = target / f"kvtier-{match['version']}.dist-info"
    about.mkdir()
    name = project["project"]["name"]
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {match['version']}\n")
    plugins = project["project"]["entry-points"].get(_PLUGINS, {})
    lines = [f"[{_PLUGINS}]", *(f"{plugin} = {place}" for plugin, place in plugins.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


def _locked(package: str) -> str:
    """Return a package's entry of the lock file, with its hashes."""
    lock = (_ROOT / "requirements.lock").read_text(encoding="utf-8")
    entry = re.search(rf"^{package}==.*?(?=^\S)", lock, re.MULTILINE | re.DOTALL)
    if entry is None:
        raise LookupError(f"requirements.lock has no {package}")
    return "".join(line for line in entry[0].splitlines(keepends=True) if not line.lstrip().startswith("#"))


def _download(wanted: Path, wheels: Path, python: str, machine: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    platforms = [part for name in _PLATFORMS for part in ("--platform", f"{name}_{machine}")]
    of = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", python, *platforms]
    where = ["--require-hashes", "--requirement", str(wanted), "--dest", str(wheels)]
    subprocess.run([*command, *of, *where], check=True)  # noqa: S603 - pip


def _main() -> None:
    parser = argparse.ArgumentParser(description="Lay out the connector's payload for vLLM's images.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--architecture", choices=ARCHITECTURES, required=True)
    options = parser.parse_args()
    lay_out(options.folder, options.architecture)
    print(f"{options.folder}: {size_bytes(options.folder) / 1e6:.1f} MB")  # noqa: T201 - a script's answer


if __name__ == "__main__":
    _main()
