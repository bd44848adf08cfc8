from tests.cases.checks import PASS, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.model import overridden_length

SCALED = '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}'


def test_scaled_positions_make_sequences_longer() -> None:
    result = verdict(overridden_length, resource(engine={"extraArgs": ["--hf-overrides", SCALED]}))
    says(result, WARN, "SequenceNotKnown", "rope_parameters", "40,960 tokens")
    assert result.field == "spec.engine.maxModelLen"
    nested = ["--hf-overrides.text_config.rope_scaling.factor", "4"]
    says(verdict(overridden_length, resource(engine={"extraArgs": nested})), WARN, "SequenceNotKnown")


def test_a_length_that_is_given_is_known() -> None:
    given = {"extraArgs": ["--hf-overrides", SCALED], "maxModelLen": 131_072}
    says(verdict(overridden_length, resource(engine=given)), PASS, "Passed")
    others = {"extraArgs": ["--hf-overrides", '{"max_position_embeddings": 8192}']}
    says(verdict(overridden_length, resource(engine=others)), PASS, "Passed")
