"""The sides that live in processes of their own, by name, and what is asked of them, line by line."""

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Final

from tests.bench.connector.disk.work import Content, Op, Sample, Side, Work

from kvtier_connector.bench.engine import serve


def _kvtier(work: Work) -> Side:
    from tests.bench.connector.disk.kvtier_disk import KVTierDisk  # noqa: PLC0415 - in its own process only

    return KVTierDisk(work)


def _vllm_fs(work: Work) -> Side:
    from tests.bench.connector.disk.vllm_fs import VLLMFileSystem  # noqa: PLC0415 - as above

    return VLLMFileSystem(work)


def _lmcache(work: Work) -> Side:
    from tests.bench.connector.disk.lmcache_disk import LMCacheDisk  # noqa: PLC0415 - as above

    return LMCacheDisk(work)


SIDES: Final[dict[str, Callable[[Work], Side]]] = {
    "kvtier": _kvtier,
    "vllm_fs": _vllm_fs,
    "lmcache": _lmcache,
}


class WrongBytesError(Exception):
    """A side loaded something else than was stored."""


class Measured:
    """A side and its work: stores all blocks at the start, then takes samples."""

    def __init__(self, side: Side, work: Work) -> None:
        self.side = side
        self._work = work
        self._content = Content(work.block_bytes)
        for run in work.runs():
            self._measure("store", run, side.variants[0])
        for run in work.runs():
            self._measure("load", run, side.variants[0])
            self._check(run, whole=True)

    def sample(self, op: Op, variant: str, seed: int) -> Sample:
        """Store anew or load some blocks.

        Raises:
            WrongBytesError: what was loaded is not what was stored.
        """
        blocks = self._work.draw(seed)
        sample = self._measure(op, blocks, variant)
        if op == "load":
            self._check(blocks, whole=False)
        return sample

    def _measure(self, op: Op, blocks: Sequence[int], variant: str) -> Sample:
        if op == "load":
            for memory in self.side.loaded():
                self._content.spoil(memory)
        memories = self.side.before(op, blocks)
        for memory, block in zip(memories, blocks, strict=op == "store"):
            self._content.fill(memory, block)
        start, start_cpu = time.perf_counter(), _cpu_seconds()
        self.side.run(op, blocks, variant)
        seconds, cpu_seconds = time.perf_counter() - start, _cpu_seconds() - start_cpu
        return Sample(len(blocks) * self._work.block_bytes, seconds, cpu_seconds)

    def _check(self, blocks: Sequence[int], *, whole: bool) -> None:
        for memory, block in zip(self.side.loaded()[: len(blocks)], blocks, strict=True):
            if not self._content.holds(memory, block, whole=whole):
                raise WrongBytesError(f"block {block} was loaded with other bytes than were stored")


def _cpu_seconds() -> float:
    """Of all threads of this process, the kernel's own for it (io-wq) among them."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main(arguments: Sequence[str]) -> None:
    """Serve one side, as `side_process` asks it."""
    answers, name, work = int(arguments[0]), arguments[1], Work(**json.loads(arguments[2]))
    measured = Measured(SIDES[name](work), work)
    ready = {"variants": measured.side.variants}
    serve(answers, lambda question: asdict(measured.sample(**question)), ready)
    measured.side.close()


if __name__ == "__main__":
    main(sys.argv[1:])
