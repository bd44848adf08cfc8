"""What comes into vLLM's images runs in each Python that these have."""

import os
import subprocess
from pathlib import Path
from shutil import which

import pytest
import typing_extensions

CONNECTOR = Path(__file__).parents[3] / "connector"
PACKAGES = ("kvtier_common", "kvtier_connector")
MINORS = ("3.10", "3.11", "3.12", "3.13")
# What it lacks here is vLLM's or the image's own, and is not installed for each Python of this machine.
IMPORT_ALL = """
import importlib, pathlib, sys

root = pathlib.Path(sys.argv[1])
imported = 0
for file in sorted(file for package in sys.argv[2:] for file in (root / package).rglob("*.py")):
    compile(file.read_bytes(), str(file), "exec")
    name = ".".join(file.relative_to(root).with_suffix("").parts)
    if file.name.startswith("__") or name.startswith("kvtier_connector.vllm."):  # refuses to be here
        continue
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        assert not error.name.startswith("kvtier_"), error
    else:
        imported += 1
print(imported)
"""


def interpreter(minor: str) -> str | None:
    """A Python of a minor: on PATH, or among pyenv's."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    of_pyenv = sorted(versions.glob(f"{minor}.*/bin/python"))
    return str(of_pyenv[-1]) if of_pyenv else which(f"python{minor}")


@pytest.mark.parametrize("minor", MINORS)
def test_its_modules_are_this_python_s(minor: str, tmp_path: Path) -> None:
    python = interpreter(minor)
    if python is None:
        pytest.skip(f"no Python {minor} here")
    own = Path(typing_extensions.__file__)
    (tmp_path / own.name).symlink_to(own)  # vLLM requires it
    done = subprocess.run(  # noqa: S603 - an interpreter of this machine
        [python, "-S", "-c", IMPORT_ALL, str(CONNECTOR), *PACKAGES],
        env={"PYTHONPATH": f"{CONNECTOR}:{tmp_path}", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 40, "most modules need a package that is not here"
