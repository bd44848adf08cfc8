"""What an engine of another fingerprint had left: removed, and said what it was."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.connector.disk.rig.blocks import BLOCK, KEY_BYTES, capacity_for, key_of, request_for

from kvtier_connector.core.behind.break_even import Rates
from kvtier_connector.core.disk.files.fingerprint import Fingerprint, fingerprint
from kvtier_connector.core.disk.files.journal import Entries
from kvtier_connector.core.disk.files.namespaces import Removed, removed_text
from kvtier_connector.core.disk.files.store import Store

BEFORE = fingerprint({"vllm": "0.32", "KV cache groups": "x" * 50, "dtype": "bfloat16"})
NOW = fingerprint({"vllm": "0.33", "KV cache groups": "y" * 50, "dtype": "bfloat16"})
CHANGES = {"KV cache groups": "", "vllm": '"0.32" -> "0.33"'}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder of an engine of BEFORE, which left three blocks and what it had learnt."""
    store = Store.open(request_for(tmp_path / "tier", capacity_for(8), meaning=BEFORE))
    for slots, numbers in (([0, 1, 2], [1, 2, 3]), ([2, 5], [4, 5])):  # the second takes a slot of the first
        keys = np.frombuffer(b"".join(map(key_of, numbers)), np.uint8).reshape(-1, KEY_BYTES)
        store.record(Entries(np.array(slots, np.int32), keys, np.array(numbers, np.uint64)), ())
    store.record(store.shape.nothing, np.array([0], np.int32))
    store.keep_rates(Rates(1e9, 0.002, 0.0).text())
    store.close()
    return tmp_path / "tier"


def opened(path: Path, meaning: Fingerprint = NOW) -> tuple[Removed, ...]:
    """What an engine removes as it starts."""
    store = Store.open(request_for(path, capacity_for(8), meaning=meaning))
    store.close()
    return store.removed


def test_what_was_removed_is_told_once(path: Path) -> None:
    (removed,) = opened(path)
    assert removed.path == path / BEFORE.folder
    assert not removed.path.exists()
    assert removed.blocks == 3
    assert removed.taken_bytes >= 8 * BLOCK
    assert removed.changes == CHANGES
    assert removed.rates == Rates(1e9, 0.002, 0.0)
    assert opened(path) == ()


def test_an_engine_of_the_same_fingerprint_removes_nothing(path: Path) -> None:
    assert opened(path, BEFORE) == ()
    assert (path / BEFORE.folder / "index").exists()


@pytest.mark.parametrize("content", [b"", b"x" * 200, None], ids=["empty", "damaged", "gone"])
def test_an_index_that_cannot_be_read_is_not_counted(path: Path, content: bytes | None) -> None:
    index = path / BEFORE.folder / "index"
    if content is None:
        index.unlink()
    else:
        index.write_bytes(content)
    (removed,) = opened(path)
    assert removed.blocks is None


@pytest.mark.parametrize("content", ["", "[[[", "no JSON\n\n}"])
def test_a_fingerprint_that_cannot_be_read_says_nothing(path: Path, content: str) -> None:
    (path / BEFORE.folder / "fingerprint").write_text(content)
    (removed,) = opened(path)
    assert (removed.blocks, removed.changes) == (3, {})


REMOVED = Removed(Path("/cache/a/0123456789abcdef"), 50 << 30, 1000, CHANGES, Rates(token_s=0.0005))
ABOUT = "disk tier: removed what an engine of another fingerprint had left in /cache/a/0123456789abcdef: "
WHY = '50.00 GiB; it differs in KV cache groups, vllm ("0.32" -> "0.33")'


@pytest.mark.parametrize(
    ("removed", "text"),
    [
        (REMOVED, f"1000 chunks with 256000 tokens, 128 s or more to compute again, {WHY}"),
        (replace(REMOVED, rates=Rates()), f"1000 chunks with 256000 tokens, {WHY}"),
        (replace(REMOVED, blocks=None), WHY),
        (
            replace(REMOVED, changes={"chunk": "[1, 4096] -> [1, 8192]"}),
            "1000 chunks, 50.00 GiB; it differs in chunk ([1, 4096] -> [1, 8192])",
        ),
        (replace(REMOVED, changes={}), "1000 chunks, 50.00 GiB; nothing says how it differs"),
    ],
    ids=["all", "nothing learnt", "no index", "other chunks", "no fingerprint"],
)
def test_a_line_says_what_it_costs(removed: Removed, text: str) -> None:
    assert removed_text(removed, 256) == ABOUT + text
