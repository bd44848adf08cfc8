from tests.cases.checks import PASS, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.device import cpu_request
from kvtier_operator.planning.observed import Machine, Observed


def test_an_engine_on_the_cpu_that_asks_for_none() -> None:
    result = verdict(cpu_request, resource(engine={"device": "cpu"}))
    says(result, WARN, "NoCPURequest", "set it to the cores")
    assert result.field == "spec.engine.resources.requests.cpu"


def test_cores_asked_for_or_not_needed() -> None:
    for engine in (
        {"device": "cpu", "resources": {"requests": {"cpu": 4}}},
        {"device": "cpu", "resources": {"limits": {"cpu": "4"}}},
        {"device": "cuda"},
    ):
        says(verdict(cpu_request, resource(engine=engine)), PASS, "Passed")


def test_a_process_of_this_machine_asks_nobody() -> None:
    here = Observed(machine=Machine())
    says(verdict(cpu_request, resource(engine={"device": "cpu"}), here), PASS, "Passed")
