"""The answers of both minors: asked once for what they depend on, vLLM, the model and how it is asked."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.cluster.harness.programs.locked import lock
from tests.cluster.harness.programs.tools import cache_folder
from tests.engine.planning.oracle.sets import SETS
from tests.shared.newer_vllm import newer_vllm_as_well, older_vllm

MINORS: Final = ("0.32", "0.33")
_ASKING: Final = ("answer", "ask", "build", "cases", "combinations", "like_cuda")


@cache
def answers(minor: str, models: str = "usual") -> Mapping[str, list[Mapping[str, Any]]]:
    """Every answer of a minor to a set of models: by the model's name, one entry a combination."""
    folder, cases = answers_folder(minor), SETS[models]
    folder.mkdir(parents=True, exist_ok=True)
    with lock(folder.with_name(f"{folder.name}.lock")):  # others may be asking the same
        if not all((folder / f"{case.key}.json").exists() for case in cases()):
            _ask(minor, models, folder)
    return {case.name: json.loads((folder / f"{case.key}.json").read_text()) for case in cases()}


def answers_folder(minor: str) -> Path:
    """Where they are kept, a file a model."""
    said = [Path(__file__).with_name(f"{name}.py").read_text() for name in _ASKING]
    digest = hashlib.sha256("\n".join(said).encode()).hexdigest()[:12]
    return cache_folder() / f"oracle-{minor}-{digest}"


def _ask(minor: str, models: str, folder: Path) -> None:
    own = dict(os.environ) | {"PYTHONWARNINGS": "ignore"}
    environment = older_vllm(own) if minor == MINORS[0] else newer_vllm_as_well(own)
    command = [sys.executable, "-m", "tests.engine.planning.oracle.ask", models, str(folder)]
    root = Path(__file__).parents[4]
    done = subprocess.run(command, cwd=root, env=environment, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - our own
    assert done.returncode == 0, done.stderr[-3000:]
