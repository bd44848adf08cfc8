"""A worker counts its steps, for a tier that grows beside them; no engine is started."""

from unittest.mock import Mock

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def test_a_step_runs_from_its_first_hook_to_its_results() -> None:
    from kvtier_connector.core.region.pace import Steps  # noqa: PLC0415 - takes seconds
    from kvtier_connector.vllm.connector import KVTierConnector  # noqa: PLC0415 - as above
    from kvtier_connector.vllm.offloading.steps import NO_TRANSFERS  # noqa: PLC0415 - as above
    from kvtier_connector.vllm.offloading.worker import KVTierWorker  # noqa: PLC0415 - as above

    worker = Mock(spec=KVTierWorker, busy=False)
    connector = object.__new__(KVTierConnector)
    connector._upstream_worker = Mock(worker=worker, has_stores_put_off=False)
    connector._running_step = Mock()
    connector._step_count = steps = Steps()
    for number in (1, 2):
        connector.handle_preemptions(NO_TRANSFERS)
        assert (steps.begun, steps.ended) == (number, number - 1)
        connector.get_transfer_results(set())
        assert (steps.begun, steps.ended) == (number, number)
