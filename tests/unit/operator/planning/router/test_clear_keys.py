"""API keys over HTTP."""

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan


@pytest.mark.parametrize(
    ("standalone", "is_said"),
    [
        ({"apiKeys": {"secretName": "keys"}}, True),
        ({"apiKeys": {"secretName": "keys"}, "tlsSecretName": "tls"}, False),
        ({}, False),
    ],
)
def test_are_said_to_be_readable(standalone: dict[str, object], is_said: bool) -> None:
    gateway = {"provider": "standalone", "standalone": standalone}
    notes = make_plan(resource(router={"gateway": gateway}), Observed()).notes
    assert any("standalone.tlsSecretName" in note for note in notes) is is_said
