"""Packs what a machine with a card and no network needs: kvtier, this benchmark, and wheels that it lacks.

python -m tests.bench.card.pack OUT --wheel vllm-0.33.0-...whl --wheel xgrammar-...whl

OUT has part.000, part.001 and so on, none larger than the limit. What a card's machine has already, such as
PyTorch, Triton and Transformers, need not be packed; what is unpacked is found first.
"""

import io
import lzma
import tarfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Final, cast
from zipfile import ZipFile, is_zipfile

import click

_ROOT: Final = Path(__file__).resolve().parents[3]
_SOURCES: Final = (
    *("connector/kvtier_common", "connector/kvtier_connector"),
    *("operator/kvtier_operator", "scorer/kvtier_scorer"),
)
_BENCH: Final = "tests/bench/card"
LEFT_OUT: Final = (
    "*.jpg",
    "vllm/vllm-rs*",
    "vllm/third_party/deep_gemm/*",
    "vllm/third_party/fmha_*",
    "vllm/_moe_C*",
    "vllm/_qutlass_C*",
    "vllm/vllm_flash_attn/_vllm_fa2_C*",
)
"""Of vLLM's wheel: kernels of experts, of other number formats and of cards before Hopper."""
_MIB: Final = 1 << 20


class Parts:
    """A file that is written compressed, in parts of so many bytes at most."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.written: list[Path] = []
        self._folder, self._limit_bytes = folder, limit_bytes
        self._compressor = lzma.LZMACompressor()
        self._pending = bytearray()

    def write(self, data: bytes) -> None:
        """Write it behind what is written."""
        self._pending += self._compressor.compress(data)
        while len(self._pending) >= self._limit_bytes:
            self._next()

    def close(self) -> None:
        """Write what is left into the last part."""
        self._pending += self._compressor.flush()
        while self._pending:
            self._next()

    def _next(self) -> None:
        path = self._folder / f"part.{len(self.written):03}"
        path.write_bytes(self._pending[: self._limit_bytes])
        del self._pending[: self._limit_bytes]
        self.written.append(path)


def pack(
    out: Path, wheels: Sequence[Path], *, limit_bytes: int, left_out: Sequence[str] = LEFT_OUT
) -> list[Path]:
    """Write the parts; returns them in order.

    Raises:
        FileExistsError: The folder has parts of something else.
    """
    out.mkdir(parents=True, exist_ok=True)
    if any(out.glob("part.*")):
        raise FileExistsError(f"{out} has parts already")
    parts = Parts(out, limit_bytes)
    with tarfile.open(fileobj=cast("IO[bytes]", parts), mode="w|") as archive:
        for name, content in _files(wheels, left_out):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755 if name.endswith(".so") else 0o644
            archive.addfile(member, io.BytesIO(content))
    parts.close()
    return parts.written


def _files(wheels: Sequence[Path], left_out: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Names at the target, and contents: kvtier's own, then the wheels'."""
    for source in (*_SOURCES, _BENCH):
        folder = _ROOT / source
        base = _ROOT if source == _BENCH else folder.parent
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(base)), path.read_bytes()
    for wheel in wheels:
        if not is_zipfile(wheel):
            raise ValueError(f"{wheel} is no wheel")
        with ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not name.endswith("/") and not any(fnmatch(name, pattern) for pattern in left_out):
                    yield name, archive.read(name)


@click.command(help=__doc__)
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--wheel", "wheels", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Is unpacked beside kvtier; may be repeated.",
)  # fmt: skip
@click.option("--limit-mib", type=click.IntRange(1), default=48, show_default=True, help="Of one part.")
@click.option("--whole", is_flag=True, help="Leave out nothing of the wheels.")
def main(out: Path, wheels: tuple[Path, ...], limit_mib: int, *, whole: bool) -> None:
    """Pack, and say how it is used."""
    try:
        parts = pack(out, wheels, limit_bytes=limit_mib * _MIB, left_out=() if whole else LEFT_OUT)
    except (FileExistsError, ValueError) as error:
        raise click.UsageError(str(error)) from error
    for path in parts:
        click.echo(f"{path}  {path.stat().st_size / _MIB:.1f} MiB")
    click.echo(
        "On the machine: mkdir card && cat part.* | xz -dc -T0 | tar -x -C card && cd card\n"
        "  PYTHONPATH=$PWD HF_HUB_OFFLINE=1 python3 -m tests.bench.card --out OUT\n"
        "the same again while it exits with 3"
    )


if __name__ == "__main__":
    main(prog_name="python -m tests.bench.card.pack")
