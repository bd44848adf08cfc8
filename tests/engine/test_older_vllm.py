"""What differs between vLLM's minors runs under the older one, too, whose build for the CPU is whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.newer_vllm import older_vllm

pytestmark = pytest.mark.engine

_ENGINE = Path(__file__).parent
_CONNECTOR = ("manager", "quiet_steps", "resets", "refusals", "tier", "tier_faults", "secondary_tier")
_LONG = (
    "secondary_faults",
    "secondary_settings",
    "promotions",
    "layer_loads",
    "speculation",
    "disk",
    "disk_kinds",
    "tier_kinds",
)
_PATHS = [
    pytest.param(["planning"], id="arguments"),
    pytest.param([f"connector/test_{file}.py" for file in _CONNECTOR], id="connector"),
    pytest.param([f"connector/test_{file}.py" for file in _LONG], id="more", marks=pytest.mark.long),
]


@pytest.mark.parametrize("paths", _PATHS)
def test_under_the_older_vllm(paths: list[str]) -> None:
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
