"""Check data-parallel: what a picker can tell of the engines of one pod."""

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.arguments import reserved_arguments
from kvtier_operator.planning.checks.picker import data_parallel


def test_one_engine_has_an_address_of_its_own() -> None:
    says(verdict(data_parallel, resource()), PASS, "Passed")


@pytest.mark.parametrize(
    ("flavor", "words"),
    [("llm-d", "first series alone"), ("gaie", "first series alone"), ("builtin", "adds up their queues")],
)
def test_several_engines_are_one_to_a_picker(flavor: str, words: str) -> None:
    one = resource(replicas=2, engine={"dataParallelSize": 4}, router={"flavor": flavor})
    result = verdict(data_parallel, one)
    says(result, WARN, "EnginesBehindOnePort", "4 engines", f"picker {flavor}", words)
    says(result, WARN, "EnginesBehindOnePort", "409,600 tokens", "1 in 4", "102,400 tokens", "replicas to 8")
    assert result.field == "spec.engine.dataParallelSize"


@pytest.mark.parametrize(
    "argument", ["--data-parallel-multi-port-external-lb", "-dpm", "-dpl=2", "--data_parallel_rank"]
)
def test_other_ways_to_lay_out_engines_are_refused(argument: str) -> None:
    one = resource(engine={"dataParallelSize": 4, "extraArgs": [argument]})
    says(verdict(reserved_arguments, one), REJECT, "ReservedArgument", argument.partition("=")[0], "one port")
