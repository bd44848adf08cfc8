from collections.abc import Mapping

import pytest
import yaml
from tests.unit.operator.planning.backends.planned import resource

from kvtier_common.tier import Tier
from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.api.spec.router import SUPPORTED_VERSIONS
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.router.router_plan import RouterPlan


def router(changes: Mapping[str, object]) -> RouterPlan:
    return make_plan(resource(changes), Observed()).router


def test_qwen3_32b_with_100_gib_is_6400_entries() -> None:
    plan = router({"spec.engine.kvCacheMemory": "20Gi"})
    assert plan.tokens_per_entry == 64
    assert plan.entries == {Tier.GPU: 1_280, Tier.CPU: 6_400}
    assert yaml.safe_load(plan.config)["apiVersion"] == "llm-d.ai/v1alpha1"


@pytest.mark.parametrize(
    ("flavor", "version", "image"),
    [
        ("llm-d", None, "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0"),
        ("llm-d", "0.9.0", "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.9.0"),
        ("gaie", None, "registry.k8s.io/gateway-api-inference-extension/epp:v1.4.0"),
        ("gaie", "v1.4.1", "registry.k8s.io/gateway-api-inference-extension/epp:v1.4.1"),
        ("gaie", "1.5", "registry.k8s.io/gateway-api-inference-extension/epp:v1.5.0"),
        ("builtin", None, f"registry.invalid/kvtier/picker:{KVTIER_VERSION}"),
    ],
)
def test_image_by_flavour_and_version(flavor: str, version: str | None, image: str) -> None:
    changes = {"spec.router.flavor": flavor} | ({"spec.router.version": version} if version else {})
    assert router(changes).image == image
    assert router(changes | {"spec.router.image": "mine:1"}).image == "mine:1"


@pytest.mark.parametrize(("flavor", "version"), [("llm-d", "0.8"), ("gaie", "1.6.0"), ("gaie", "v1.3.0")])
def test_other_versions_are_refused_by_field(flavor: str, version: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        router({"spec.router.flavor": flavor, "spec.router.version": version})
    [problem] = refused.value.problems
    assert problem.field == "spec.router.version"
    assert version in problem.message


def test_supported_versions_are_all_of_upstream_that_no_warning_is_about() -> None:
    def is_taken(flavor: str, version: str) -> bool:
        changes = {"spec.router.flavor": flavor, "spec.router.version": version}
        try:
            plan = make_plan(resource({**changes, "spec.engine.kvCacheMemory": "1Gi"}), Observed())
        except InvalidInputError:
            return False
        return "is later than" not in plan.router.config

    minors = [f"{major}.{minor}" for major in (0, 1) for minor in range(20)]
    taken = [minor for minor in minors if any(is_taken(flavor, minor) for flavor in ("llm-d", "gaie"))]
    assert taken == [*SUPPORTED_VERSIONS]


def test_weights_that_leave_no_scorer_are_refused_by_field() -> None:
    weights = {"queue": 0, "kvCacheUtilization": 0, "gpuPrefix": 0, "cpuPrefix": 0, "diskPrefix": 1}
    with pytest.raises(InvalidInputError) as refused:
        router({"spec.router.weights": weights})
    assert refused.value.problems[0].field == "spec.router.weights"


@pytest.mark.parametrize(
    ("engine", "block"),
    [({"device": "cpu"}, 128), ({"device": "cpu", "blockSize": 32}, 32), ({"device": "gpu"}, 16)],
    ids=str,
)
def test_entries_follow_the_block_that_the_engine_is_given(engine: dict[str, object], block: int) -> None:
    plan = router({"spec.router.flavor": "builtin", "spec.engine": engine})
    assert (plan.tokens_per_entry, plan.entries.get(Tier.CPU)) == (block, 409_600 // block)
    assert f"blockSizeTokens: {block}\n" in plan.config


def test_the_hash_follows_the_configuration_alone() -> None:
    assert router({}).config_hash == router({"spec.replicas": 9}).config_hash
    assert router({}).config_hash != router({"spec.tiers.cpu.capacity": "200Gi"}).config_hash


def test_prompts_are_matched_as_far_as_the_engine_takes_them() -> None:
    plan = router({"spec.engine.maxModelLen": 100_000})
    assert "maxPrefixTokensToMatch: 100000" in plan.config
