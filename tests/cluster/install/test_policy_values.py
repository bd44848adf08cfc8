"""Limits of the cluster's owner that are wrong: Helm refuses them, with the value's name."""

import json
from pathlib import Path

import pytest
from tests.cluster.harness.api.commands import Command, CommandError
from tests.cluster.harness.operator.places import CHART

from kvtier_operator.planning.base.owner_policy import OwnerPolicy, policy_document


@pytest.mark.parametrize("limit", policy_document(OwnerPolicy()))
def test_a_limit_without_a_value_is_refused(helm: Command, tmp_path: Path, limit: str) -> None:
    """Helm drops what is null, and the operator allows what is not there."""
    values = tmp_path / "values.yaml"
    values.write_text(f"operator:\n  policy:\n    {limit}:\n")
    for schema in ((), ("--skip-schema-validation",)):
        with pytest.raises(CommandError, match=rf"operator\.policy\.{limit}: it has no value, which would "):
            helm("template", "kvtier", CHART, "--values", values, *schema)


def test_no_limits_at_all_are_refused(helm: Command) -> None:
    with pytest.raises(CommandError, match=r"operator\.policy\.hostPath: it has no value, which would "):
        helm("template", "kvtier", CHART, "--set", "operator.policy=null")


@pytest.mark.parametrize(
    ("limit", "entry"),
    [
        ("hostPath", "relative/x"),
        ("images", "http://x/"),
        ("hostNames", "LLM.example.com"),
        ("foreignGateways", "a/b/c"),
    ],
)
def test_an_entry_that_would_allow_nothing_is_refused(helm: Command, limit: str, entry: str) -> None:
    given = f"operator.policy.{limit}={json.dumps(['a' if limit != 'hostPath' else '/a', entry])}"
    with pytest.raises(CommandError, match=rf"at '/operator/policy/{limit}/1': '{entry}' does not match"):
        helm("template", "kvtier", CHART, "--set-json", given)
