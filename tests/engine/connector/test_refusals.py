"""What is refused before an engine starts, each in one line that names it."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from tests.engine.connector.offloading_config import offloading_config

from kvtier_connector.config import GIB, ConnectorConfig, kv_transfer_config
from kvtier_connector.errors import ConnectorError, SettingError, UnsupportedEngineError

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

IMPORT_UNDER = """
import vllm
vllm.__version__ = {version!r}
import kvtier_connector.vllm.connector
"""


def started_with(**changes: object) -> None:
    """Construct the connector as vLLM does, as far as it gets."""
    from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole  # noqa: PLC0415 - takes seconds

    from kvtier_connector.vllm.connector import KVTierConnector  # noqa: PLC0415 - takes seconds

    transfer: dict[str, Any] = kv_transfer_config(ConnectorConfig(cpu_capacity_bytes=GIB))
    transfer["kv_connector_extra_config"] |= changes.pop("extra", {})
    config = SimpleNamespace(kv_transfer_config=SimpleNamespace(**(transfer | changes)))
    KVTierConnector(config, KVConnectorRole.SCHEDULER, None)


def test_an_unknown_setting() -> None:
    with pytest.raises(SettingError) as caught:
        started_with(extra={"cpu_bytes_to_use": 5})
    assert str(caught.value).startswith(
        "kv_connector_extra_config.cpu_bytes_to_use: unknown setting; known are "
    )
    assert "\n" not in str(caught.value)


def test_the_policy_that_would_fail_requests() -> None:
    with pytest.raises(SettingError, match="kv_load_failure_policy: got 'fail', must be 'recompute'"):
        started_with(kv_load_failure_policy="fail")


@pytest.mark.parametrize("version", ["0.32.0", "0.32.1rc2", "0.33.0+cpu"])
def test_supported_versions(version: str) -> None:
    from kvtier_connector.vllm.upstream.compat import require_supported_vllm  # noqa: PLC0415 - takes seconds

    require_supported_vllm(version)


def test_the_release_that_runs_here_is_the_one_that_is_said_to_be_tested() -> None:
    from vllm import __version__  # noqa: PLC0415 - takes seconds

    from kvtier_connector.supported import TESTED_RELEASES, minor_of  # noqa: PLC0415 - as above

    assert TESTED_RELEASES[minor_of(__version__)] == __version__.partition("+")[0]


@pytest.mark.parametrize("version", ["0.31.2", "0.34.0", "0.3.2", "1.0.0", "dev"])
def test_other_versions(version: str) -> None:
    from kvtier_connector.vllm.upstream.compat import require_supported_vllm  # noqa: PLC0415 - takes seconds

    with pytest.raises(
        UnsupportedEngineError, match=rf"^vLLM {version} is not supported .* 0\.32\.x, 0\.33\.x$"
    ):
        require_supported_vllm(version)


def test_another_vllm_is_refused_before_its_internals_are_touched() -> None:
    program = IMPORT_UNDER.format(version="0.31.2")
    run = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith(
        f"kvtier_connector.errors.{UnsupportedEngineError.__name__}: vLLM 0.31.2 is not supported"
    )


def test_pipeline_parallelism() -> None:
    from kvtier_connector.vllm.spec import KVTierOffloadingSpec  # noqa: PLC0415 - takes seconds

    with pytest.raises(ConnectorError, match=r"PP > 1"):
        KVTierOffloadingSpec(offloading_config(pp_size=2, world_size=2))
