"""What the endpoint picker of others is told: as planned, and better once engines have said it."""

from typing import Any

import yaml
from tests.cases.kvcachetier import ABSENT, document

from kvtier_common.tier import Tier
from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.attach.picker import PUBLISHED_VERSION, others_picker
from kvtier_operator.planning.observed import EngineTokens, Observed

TOLD = Observed(engine=EngineTokens({Tier.GPU: 64_000, Tier.CPU: 128_000}, block=16))


def _picker(observed: Observed, **changes: Any) -> Any:  # noqa: ANN401 - as YAML is
    attach = {"podSelector": {"matchLabels": {"app": "chat"}}}
    resource = parse_resource(document({"spec.attach": attach, **changes}), "chat")
    return others_picker(resource, observed, PUBLISHED_VERSION)


def test_engines_tell_better_than_the_plan() -> None:
    planned, told = _picker(Observed()), _picker(TOLD)
    assert planned.entries[Tier.GPU] is None, "nobody said how many ranks and which GPU"
    assert told.entries == {Tier.GPU: 1000, Tier.CPU: 2000}
    plugins = yaml.safe_load(told.text)["plugins"]
    capacities = [plugin.get("parameters", {}).get("lruCapacityPerServer") for plugin in plugins]
    assert [capacity for capacity in capacities if capacity] == [1000, 2000]


def test_without_a_model_engines_alone_tell() -> None:
    without = {"spec.model": ABSENT}
    assert _picker(Observed(), **without) is None
    assert _picker(TOLD, **without).entries == {Tier.GPU: 1000, Tier.CPU: 2000}
