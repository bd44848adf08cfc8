"""Alerts and dashboard read metrics that vLLM's offloading and kvtier's connector define.

Those that every engine exposes from its start are compared with a running one's in runtime/test_run.py.
"""

import pytest
from tests.cases.monitoring import read_metrics

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def test_offloading_defines_what_is_read() -> None:
    from vllm.distributed.kv_transfer.kv_connector.v1.offloading import metrics  # noqa: PLC0415 - takes seconds

    from kvtier_connector.vllm.metrics import DEFINITIONS  # noqa: PLC0415 - as above

    read = {name for name in read_metrics() if "kv_offload" in name or "kvtier" in name}
    defined = {**metrics.get_connector_metric_definitions(), **DEFINITIONS}
    # Prometheus' client adds the suffix to counters
    counters = {f"{name}_total" for name, each in defined.items() if "Counter" in type(each).__name__}
    assert read
    assert read <= counters | set(defined)
