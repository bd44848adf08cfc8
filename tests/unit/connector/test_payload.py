"""What vLLM's images are given: small, for both architectures, and whole for each Python that they have."""

import platform
import shutil
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path

import pytest
import typing_extensions
from tests.unit.connector.test_pythons import interpreter

from lay_out_payload import ARCHITECTURES, LACKING_FOLDER, PYTHONS, lay_out, lay_out_own, size_bytes

MOST_BYTES = 30_000_000


@pytest.fixture(scope="module", params=ARCHITECTURES)
def payload(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    architecture: str = request.param
    folder = tmp_path_factory.mktemp("payload") / architecture
    lay_out(folder, architecture)
    return folder


@pytest.mark.long  # wheels are fetched
def test_it_is_small_and_has_what_the_images_lack_for_each_python(payload: Path) -> None:
    assert size_bytes(payload) < MOST_BYTES
    machine = ARCHITECTURES[payload.name]
    compiled = {file.name for file in (payload / LACKING_FOLDER / "xxhash").glob("*.so")}
    minors = [python.replace(".", "") for python in PYTHONS]
    assert compiled == {f"_xxhash.cpython-{minor}-{machine}-linux-gnu.so" for minor in minors}
    folders = {path.name for path in payload.iterdir() if path.suffix != ".dist-info"}
    assert folders == {"kvtier_common", "kvtier_connector", LACKING_FOLDER}
    assert (payload / LACKING_FOLDER / "liburing").is_dir() == (payload.name == "amd64")
    assert not list(payload.rglob("__pycache__"))


@pytest.mark.long  # wheels are fetched
def test_it_has_no_entry_point_whose_module_is_not_there(payload: Path) -> None:
    [about] = payload.glob("kvtier-*.dist-info")
    found = Distribution.at(about)
    assert found.metadata["Name"] == "kvtier"
    for entry in found.entry_points:
        assert entry.group == "vllm.general_plugins"
        assert (payload / Path(*entry.module.split(".")).with_suffix(".py")).is_file()


@pytest.mark.long
@pytest.mark.parametrize("minor", PYTHONS)
def test_each_python_loads_what_is_compiled(payload: Path, minor: str, tmp_path: Path) -> None:
    python = interpreter(minor)
    if python is None or ARCHITECTURES[payload.name] != platform.machine():
        pytest.skip(f"no Python {minor} here, or another architecture's")
    others = shutil.copy(typing_extensions.__file__, tmp_path)  # alone: beside it is another Python's xxhash
    program = (
        "import kvtier_connector.config as config, xxhash\n"
        "print(xxhash.xxh3_64_hexdigest(b''), config.__file__)"
    )
    done = subprocess.run(  # noqa: S603 - an interpreter of this machine
        [python, "-S", "-B", "-c", program],
        env={"PYTHONPATH": f"{payload}:{Path(others).parent}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["2d06800538d394c2", str(payload / "kvtier_connector" / "config.py")]


def test_what_an_image_has_is_not_hidden_and_what_it_cannot_import_is_said(tmp_path: Path) -> None:
    payload = tmp_path / "payload"
    lay_out_own(payload)
    compiled = payload / LACKING_FOLDER / "xxhash"
    compiled.mkdir(parents=True)
    (compiled / "__init__.py").write_text("raise ImportError('compiled for another Python')")

    def told(*switches: str) -> str:
        command = [sys.executable, *switches, "-B", "-m", "kvtier_connector.complete"]
        environment = {"PYTHONPATH": str(payload)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        return done.stderr

    assert told() == ""
    assert "compiled for another Python" in told("-S"), "without what is installed"
