"""What vLLM's images are given: small, for both architectures, and whole for each Python that they have."""

import platform
import subprocess
from importlib.metadata import Distribution
from pathlib import Path

import pytest
import typing_extensions
from tests.unit.connector.test_pythons import interpreter

from lay_out_payload import ARCHITECTURES, PYTHONS, lay_out, size_bytes

pytestmark = pytest.mark.long  # wheels are fetched
MOST_BYTES = 30_000_000


@pytest.fixture(scope="module", params=ARCHITECTURES)
def payload(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    architecture: str = request.param
    folder = tmp_path_factory.mktemp("payload") / architecture
    lay_out(folder, architecture)
    return folder


def test_it_is_small_and_has_what_the_images_lack_for_each_python(payload: Path) -> None:
    assert size_bytes(payload) < MOST_BYTES
    machine = ARCHITECTURES[payload.name]
    compiled = {file.name for file in (payload / "xxhash").glob("*.so")}
    minors = [python.replace(".", "") for python in PYTHONS]
    assert compiled == {f"_xxhash.cpython-{minor}-{machine}-linux-gnu.so" for minor in minors}
    folders = {path.name for path in payload.iterdir() if path.suffix not in {".dist-info", ".libs"}}
    assert folders - {"liburing"} == {"kvtier_common", "kvtier_connector", "xxhash"}
    assert ("liburing" in folders) == (payload.name == "amd64")
    assert not list(payload.rglob("__pycache__"))


def test_it_has_no_entry_point_whose_module_is_not_there(payload: Path) -> None:
    [about] = payload.glob("kvtier-*.dist-info")
    found = Distribution.at(about)
    assert found.metadata["Name"] == "kvtier"
    for entry in found.entry_points:
        assert entry.group == "vllm.general_plugins"
        assert (payload / Path(*entry.module.split(".")).with_suffix(".py")).is_file()


@pytest.mark.parametrize("minor", PYTHONS)
def test_each_python_loads_what_is_compiled(payload: Path, minor: str) -> None:
    python = interpreter(minor)
    if python is None or ARCHITECTURES[payload.name] != platform.machine():
        pytest.skip(f"no Python {minor} here, or another architecture's")
    others = Path(typing_extensions.__file__).parent
    program = (
        "import xxhash, kvtier_connector.config as config\n"
        "print(xxhash.xxh3_64_hexdigest(b''), config.__file__)"
    )
    done = subprocess.run(  # noqa: S603 - an interpreter of this machine
        [python, "-S", "-B", "-c", program],
        env={"PYTHONPATH": f"{payload}:{others}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["2d06800538d394c2", str(payload / "kvtier_connector" / "config.py")]
