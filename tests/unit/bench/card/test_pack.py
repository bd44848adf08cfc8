"""What is packed for a machine without a network: parts that are small enough, and all that is imported."""

import lzma
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.bench.card.pack import pack

LIMIT_BYTES = 200_000


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "vllm-0.33.0-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for name in (
            "vllm/__init__.py",
            "vllm/_C.abi3.so",
            "vllm/_moe_C.abi3.so",
            "vllm-0.33.0.dist-info/METADATA",
        ):
            archive.writestr(name, name)
    return path


def unpacked(parts: list[Path], folder: Path) -> Path:
    whole = lzma.decompress(b"".join(path.read_bytes() for path in parts))
    with tarfile.open(fileobj=BytesIO(whole)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_parts_are_small_and_together_what_runs(tmp_path: Path, wheel: Path) -> None:
    parts = pack(tmp_path / "out", [wheel], limit_bytes=LIMIT_BYTES)
    sizes = [path.stat().st_size for path in parts]
    assert len(parts) > 1
    assert {*sizes[:-1]} == {LIMIT_BYTES}
    assert 0 < sizes[-1] <= LIMIT_BYTES
    folder = unpacked(parts, tmp_path / "card")
    assert (folder / "vllm/_C.abi3.so").read_text() == "vllm/_C.abi3.so"
    assert not (folder / "vllm/_moe_C.abi3.so").exists()
    imported = ("tests.bench.card.piece", "kvtier_connector.bench.life", "kvtier_operator.planning.planner")
    script = (
        f"import sys, tests.bench.card.__main__, {', '.join(imported)}\n"
        f"print(*(sys.modules[name].__file__ for name in {imported}))"
    )
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(folder)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert all(path.startswith(str(folder)) for path in done.stdout.split()), done.stdout


def test_a_folder_with_parts_is_left_alone(tmp_path: Path, wheel: Path) -> None:
    (tmp_path / "part.000").write_text("mine")
    with pytest.raises(FileExistsError, match="has parts already"):
        pack(tmp_path, [wheel], limit_bytes=LIMIT_BYTES)
    assert (tmp_path / "part.000").read_text() == "mine"
