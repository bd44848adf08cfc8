"""One thing is said to tools that wait: it is ready, it takes time, or somebody has to act."""

from dataclasses import replace

import pytest
from tests.unit.operator.reconcile.objects import plan_objects
from tests.unit.operator.reconcile.status.statuses import FULL, READY, conditions

from kvtier_operator.reconcile.status.build import StatusInput

_STARTING = replace(READY, ready_replicas=1)


@pytest.mark.parametrize(
    ("inputs", "progress", "reason"),
    [
        (FULL, "", ""),
        (replace(FULL, engine=_STARTING), "Reconciling", "Progressing"),
        (replace(FULL, engine=replace(_STARTING, stalled=True)), "Stalled", "ProgressDeadlineExceeded"),
        (
            replace(FULL, plan=plan_objects({"spec.engine.tensorParallelSize": 3})[0]),
            "Stalled",
            "HeadsNotDivisible",
        ),
        (
            replace(FULL, plan=plan_objects({"spec.engine.tensorParallelSize": 3})[0], asked_again=True),
            "Reconciling",
            "HeadsNotDivisible",
        ),
    ],
)
def test_progress(inputs: StatusInput, progress: str, reason: str) -> None:
    by_type = conditions(inputs)
    said = [name for name in ("Stalled", "Reconciling") if name in by_type]
    assert said == ([progress] if progress else [])
    assert (by_type["Ready"]["status"] == "True") is (not progress)
    assert not progress or (by_type[progress]["status"], by_type[progress]["reason"]) == ("True", reason)
