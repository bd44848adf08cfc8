"""Engines of two ranks share a store: a chunk there is of both ranks, or it is not there."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.shared.stores import Store, running

pytestmark = [pytest.mark.engine, pytest.mark.long]  # six processes import vLLM

DEADLINE_S = 1800
CHUNKS = 100 // 64 + 333 // 64 + 700 // 64
CHUNK_BYTES = 64 * 1024
"""Of both ranks together."""


def ran(model: Path, store: Store, folder: Path, name: str, written_bytes: int) -> Any:  # noqa: ANN401 - JSON
    """What an engine found that starts with nothing."""
    result, log = folder / f"{name}.json", folder / f"{name}.log"
    program = [sys.executable, "-m", "tests.engine.connector.remote.shared_ranks"]
    with log.open("w") as output:
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [*program, str(model), f"redis://{store.address}", str(result), str(written_bytes)],
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=DEADLINE_S,
        )
    assert done.returncode == 0, log.read_text()[-5000:]
    return json.loads(result.read_text())


def tokens(answers: list[list[Any]]) -> list[list[int]]:
    return [tokens for tokens, _ in answers]


def test_a_second_engine_of_two_ranks_is_warm_with_equal_tokens(
    model_folder: Callable[..., Path], tmp_path: Path
) -> None:
    model = model_folder()
    with running("valkey", tmp_path / "store") as store:
        one = ran(model, store, tmp_path, "one", CHUNKS * CHUNK_BYTES)
        assert [cached for _, cached in one["first"]] == [0, 0, 0]
        assert one["store_bytes"] == CHUNKS * CHUNK_BYTES
        two = ran(model, store, tmp_path, "two", 0)
    assert [cached for _, cached in two["first"]] == [64, 320, 640]
    assert two["load_bytes"] == CHUNKS * CHUNK_BYTES
    assert two["store_bytes"] == 0, "what is there is not written again"
    assert tokens(one["first"]) == tokens(one["again"]) == tokens(two["first"]) == tokens(two["again"])
