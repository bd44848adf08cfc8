"""Alerts, dashboard, operator and `kvtier status` read what vLLM's offloading and kvtier's connector define.

Those that every engine exposes from its start are compared with a running one's in runtime/test_run.py.
"""

import pytest
from tests.cases.monitoring import read_metrics

from kvtier_operator.cli.cluster.resource import ENGINE_METRICS as SHOWN
from kvtier_operator.reconcile.observe.engines import READ
from kvtier_operator.runtime.metrics import WANTED

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def test_offloading_defines_what_is_read() -> None:
    from vllm.distributed.kv_transfer.kv_connector.v1.offloading import metrics  # noqa: PLC0415 - takes seconds

    from kvtier_connector.vllm.metrics import disk_tier, remote_tier  # noqa: PLC0415 - as above
    from kvtier_connector.vllm.metrics.cpu_tier import DEFINITIONS  # noqa: PLC0415 - as above

    behind = {
        "disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}},
        "remote": {"capacity": "1Ti", "url": "redis://cache:6379"},
    }
    read = {name for name in read_metrics(tiers=behind) if "kv_offload" in name or "kvtier" in name}
    others = map(bytes.decode, (*READ, *WANTED, *SHOWN))
    read |= {name for name in others if name.startswith(("vllm:kvtier_", "vllm:kv_offload_load"))}
    defined = {**metrics.get_connector_metric_definitions(), **DEFINITIONS, **disk_tier.DEFINITIONS}
    defined |= remote_tier.DEFINITIONS
    # Prometheus' client adds the suffix to counters
    counters = {f"{name}_total" for name, each in defined.items() if "Counter" in type(each).__name__}
    for tier in behind:
        assert any(tier in name for name in read)
    assert read <= counters | set(defined)
