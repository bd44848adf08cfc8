"""Kernels are kept on disk where they can be; each test is about a new process."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import xxhash

from kvtier_scorer.index import compiled

# Hashes a block. Below a file there is no folder to make, not even for root.
HASH = """
import json
from pathlib import Path
from kvtier_scorer.index import compiled
if {bare}:
    compiled._FOLDER = Path("/dev/null")
from kvtier_scorer.index import chain
hashes = chain.text_hashes(b"abcdefgh" * 8, 3, 64, 1).tolist()
fill = chain._fill
print(json.dumps([hashes, len(fill.stats.cache_hits), fill._cache.cache_path]))
"""
EXPECTED = [xxhash.xxh64_intdigest(b"abcdefgh" * 8, 3)]


def run(code: str, environment: Mapping[str, str]) -> list[Any]:
    done = subprocess.run(  # noqa: S603  # this file's own code
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: list[Any] = json.loads(done.stdout)
    return answer


def hashed(environment: Mapping[str, str], *, bare: bool = False) -> tuple[list[int], int, str | None]:
    hashes, hits, folder = run(HASH.format(bare=bare), environment)
    return hashes, hits, folder


def test_a_second_process_does_not_compile(tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = hashed(cache), hashed(cache)
    assert first[0] == second[0] == EXPECTED
    assert (first[1], second[1]) == (0, 1)
    assert Path(str(first[2])).is_relative_to(tmp_path)


@pytest.mark.parametrize("folder", ["/dev/null", "/dev/null/below"])
def test_without_the_named_folder_kernels_are_kept_elsewhere(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sources = compiled._FOLDER
    monkeypatch.setattr(compiled, "_FOLDER", Path("/dev/null"))
    kept = compiled._cache_folder.__wrapped__(sources)
    assert kept
    assert kept.parent == tmp_path / "kvtier"
    assert kept.is_dir()


def test_where_nothing_can_be_written_to_kernels_are_compiled_all_the_same() -> None:
    nowhere = {"NUMBA_CACHE_DIR": "/dev/null/a", "XDG_CACHE_HOME": "/dev/null/b"}
    assert hashed(nowhere, bare=True) == (EXPECTED, 0, None)


WARM = """
import json
import numpy as np
from kvtier_scorer.index import chain, matching, prefix_index, recency, table
from kvtier_common.tier import OF_A_POD, Tier

def kinds():
    modules = (chain, matching, recency, table)
    return {
        f"{module.__name__}.{name}": len(kernel.signatures)
        for module in modules
        for name, kernel in vars(module).items()
        if hasattr(kernel, "signatures")
    }

prefix_index.load_kernels()
before = kinds()
index = prefix_index.PrefixIndex(1 << 24)
pods = [index.add_pod({tier: 9 for tier in OF_A_POD}) for _ in range(3)]
tokens = np.arange(64, dtype=np.uint32)
for held in (tokens, tokens[::2], np.frombuffer(tokens.tobytes(), np.uint32)):
    hashes = chain.token_hashes(held, 2**63, 4, 16)
    chain.text_hashes(held.tobytes(), 0, 4, 16)
    for told in (hashes, hashes[::2], hashes.tolist()):
        index.assume_stored(pods[0], told)
        for asked in (np.array(pods, np.int32), np.array(pods), pods):
            index.match(told, asked)
        index.set_precise(pods[1], precise=True)
        index.store(pods[1], Tier.CPU, told, None)
        index.store(pods[1], Tier.CPU, told, 2**63)
        index.remove(pods[1], Tier.CPU, told[1:])
        index.clear(pods[1], Tier.CPU)
        index.resize(pods[0], Tier.GPU, 3)
index.remove_pod(pods[2])
after = kinds()
print(json.dumps([before, after]))
"""


def test_once_warm_nothing_is_compiled() -> None:
    before, after = run(WARM, {})
    assert before == after
    kernels = (
        "chain._fill",
        "matching.match",
        "matching.store_blocks",
        "matching.remove_blocks",
        "recency.assume_stored",
    )
    assert all(before[f"kvtier_scorer.index.{kernel}"] == 1 for kernel in kernels), before
