"""What our connector has Python do in a step, beside vLLM's own; no engine is started, no time is taken."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.shared.newer_vllm import engines_environment

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

TOKENS = 1032  # eight in the last block: as many steps of decoding begin none


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from tests.bench.connector import null_engine, steps  # noqa: PLC0415 - takes seconds

    meter, scratch = steps.Meter(), tmp_path_factory.mktemp("work")

    def measured(side: str, requests: int) -> Any:  # noqa: ANN401 - JSON
        engine = null_engine.NullEngine(null_engine.sides()[side], meter, scratch / "model")
        meter.now = steps.Calls()
        steps.measure_row(engine, meter=meter, seed=1, requests=requests, tokens=TOKENS)  # code runs first
        return steps.measure_row(engine, meter=meter, seed=2, requests=requests, tokens=TOKENS)

    with pytest.MonkeyPatch.context() as patch:
        for name, value in engines_environment().items():
            patch.setenv(name, value)
        with null_engine.null_device():
            yield measured


@pytest.mark.parametrize("requests", [1, 8])
def test_no_kind_of_work_takes_more_calls_than_vllms_own_connector(work: Any, requests: int) -> None:  # noqa: ANN401 - as above
    ours, vllms = work("kvtier", requests), work("vllm", requests)
    for kind, figures in ours.items():
        assert figures["found"] == vllms[kind]["found"]
        calls, most = (sum(each[part] for part in ("scheduler", "worker")) for each in (figures, vllms[kind]))
        assert calls <= most, kind


def test_a_layer_that_waits_for_nothing_costs_a_call_as_with_a_connector_that_does_nothing(work: Any) -> None:  # noqa: ANN401 - as above
    from tests.bench.connector.null_engine import LAYERS  # noqa: PLC0415 - takes seconds

    ours, nothing = work("kvtier", 1)["decode"], work("empty", 1)["decode"]
    assert (ours["worker"] - nothing["worker"]) / ours["steps"] < LAYERS
