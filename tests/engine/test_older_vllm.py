"""What differs between vLLM's minors runs under the older one, too, whose build for the CPU is whole."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.shared.newer_vllm import older_vllm

pytestmark = pytest.mark.engine

_ENGINE = Path(__file__).parent
_BRIEF = (
    "planning/arguments",
    "connector/attach/test_engine_config.py",
    "connector/offloading/test_tier.py",
    "connector/secondary/test_tier.py",
    "connector/test_refusals.py",
)
_CONNECTOR = (
    "attach/test_lacking.py",
    "control/test_clearing.py",
    "control/test_socket.py",
    "copies/test_gpu_askers.py",
    "copies/test_gpu_loads_by_engine.py",
    "copies/test_layerwise_disk_loads.py",
    "copies/test_layerwise_gpu_loads.py",
    "disk/test_disk.py",
    "disk/test_disk_kinds.py",
    "disk/test_hints.py",
    "disk/test_promotions.py",
    "offloading/test_hints.py",
    "offloading/test_manager.py",
    "offloading/test_resets.py",
    "offloading/test_speculation.py",
    "offloading/test_steps_without_transfers.py",
    "offloading/test_tier_faults.py",
    "offloading/test_tier_kinds.py",
    "secondary/test_faults.py",
    "secondary/test_remote_tier.py",
    "secondary/test_settings.py",
)
_PATHS = [
    pytest.param(_BRIEF, id="brief"),
    pytest.param(["planning"], id="planning", marks=pytest.mark.long),
    pytest.param([f"connector/{file}" for file in _CONNECTOR], id="connector", marks=pytest.mark.long),
]


@pytest.mark.parametrize("paths", _PATHS)
def test_under_the_older_vllm(paths: Sequence[str]) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    where = [_ENGINE / path for path in paths]
    done = subprocess.run(  # noqa: S603 - our own tests
        [sys.executable, "-m", "pytest", "-q", "-m", "not long", "-p", "no:cacheprovider", "-n", "0", *where],
        env=older_vllm(own),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
