"""Compiled functions are made when they are imported, and never again."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from kvtier_connector.core.compiled import compiled
from kvtier_connector.core.index.keytable import marks

IMPORTED = """
import json
from kvtier_connector.core.index import keytable
kernels = [each for each in vars(keytable).values() if hasattr(each, "signatures")]
print(json.dumps([len(kernels), sum(sum(each.stats.cache_misses.values()) for each in kernels)]))
"""


def imported(cache: Path) -> list[int]:
    """How many functions a process has after its imports, and how many of them it compiled."""
    command, environment = (
        [sys.executable, "-c", IMPORTED],
        {**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    )
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)  # noqa: S603 - ourselves
    counted: list[int] = json.loads(answer.stdout)
    return counted


def test_a_second_process_does_not_compile(tmp_path: Path) -> None:
    first, second = imported(tmp_path), imported(tmp_path)
    assert first[0] == second[0] == first[1] > 2
    assert second[1] == 0


def test_where_nothing_can_be_written_to_functions_are_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/below")
    source = compile("lambda number: 2 * number", "/dev/null/below/source.py", "eval").co_consts[0]
    assert compiled(0)(FunctionType(source, {}))(21) == 42


WITHOUT_ROOM = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
from kvtier_connector.core.index import keytable
import numpy as np
print(len(keytable.marks(np.zeros((3, 5), np.uint64))))
"""


def test_where_the_cache_is_full_functions_are_compiled_all_the_same(tmp_path: Path) -> None:
    # no HOME either, as in a pod whose user has no entry
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    done = subprocess.run(  # noqa: S603 - ourselves
        [sys.executable, "-B", "-c", WITHOUT_ROOM],
        check=False,
        capture_output=True,
        text=True,
        env={**environment, "NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


def test_other_types_than_those_compiled_for_are_refused() -> None:
    assert len(marks(np.zeros((3, 5), np.uint64))) == 3
    with pytest.raises(TypeError, match="No matching definition"):
        marks(np.zeros((3, 5), np.int32))
