"""What engines say of their tiers: how it is read, and what another look changes."""

import orjson
import pytest
from tests.cases.kvcachetier import document

from kvtier_common.metrics.text import read_families
from kvtier_common.tier import Tier
from kvtier_operator.planning.observed import EngineFindings, EngineTokens, PrefixFindings, TierFindings
from kvtier_operator.reconcile.facts.cached_plan import (
    EngineObservation,
    hash_engine,
    merge_observations,
    observation_from_status,
)
from kvtier_operator.reconcile.observe.engines import READ, read_prefixes, read_tiers

DEVICE = (
    'vllm:cache_config_info{{block_size="16",engine="{0}",'
    'kv_cache_size_tokens="{1}",num_gpu_blocks="{2}"}} 1.0\n'
)
OFFLOADED = 'vllm:kv_offload_config_info{{cpu_kv_cache_size_tokens="{0}",engine="{1}"}} 1.0\n'
KVTIER = 'vllm:kvtier_cpu_capacity_tokens{{engine="{0}"}} {1}\n'
GROWING = 'vllm:kvtier_cpu_growing{{engine="0"}} {0}.0\n'
PINNED = 'vllm:kvtier_cpu_pinned_bytes{{engine="{0}"}} {1}.0\n'
METRICS = ("cpu_capacity_tokens", "cpu_pinned_bytes", "disk_capacity_tokens", "disk_pays")
PAYS = 'vllm:kvtier_disk_pays{{engine="0"}} {0}.0\n'
KVTIER_DISK = 'vllm:kvtier_disk_capacity_tokens{{engine="{0}"}} {1}\n'


def findings(pinned_bytes: int, *, pays: bool) -> EngineFindings:
    return {Tier.CPU: TierFindings(pinned_bytes), Tier.DISK: TierFindings(pays=pays)}


def said(text: str) -> tuple[EngineTokens, EngineFindings]:
    return read_tiers(read_families(text.encode(), READ))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", EngineTokens()),
        (DEVICE.format(0, 1600, 101), EngineTokens({Tier.GPU: 1600}, block=16, gpu_blocks=101)),
        (
            DEVICE.format(0, 1600, 202) + DEVICE.format(1, 1584, 202),
            EngineTokens({Tier.GPU: 3184}, block=16, gpu_blocks=202),
        ),
        (DEVICE.format(0, "None", 101), EngineTokens({Tier.GPU: 1616}, block=16, gpu_blocks=101)),
        (DEVICE.format(0, "None", "None"), EngineTokens(block=16)),
        (
            DEVICE.format(0, 1600, 101).replace('"16"', '"None"'),
            EngineTokens({Tier.GPU: 1600}, gpu_blocks=101),
        ),
        (OFFLOADED.format(4096, 0), EngineTokens({Tier.CPU: 4096})),
        (OFFLOADED.format(4096, 0) + OFFLOADED.format(4096, 1), EngineTokens({Tier.CPU: 8192})),
        (OFFLOADED.format("", 0), EngineTokens()),
        (OFFLOADED.format("9" * 400, 0), EngineTokens()),
        (KVTIER.format(0, "2.048e+03") + KVTIER.format(1, "2.048e+03"), EngineTokens({Tier.CPU: 4096})),
        (KVTIER.format(0, "0.0"), EngineTokens()),
        # kvtier's connector tells in vLLM's label what its tier will hold when it has grown.
        (OFFLOADED.format(4096, 0) + KVTIER.format(0, "32.0"), EngineTokens({Tier.CPU: 32})),
        (OFFLOADED.format(4096, 0) + KVTIER.format(0, "0.0"), EngineTokens()),
        (KVTIER_DISK.format(0, "64.0") + KVTIER_DISK.format(1, "64.0"), EngineTokens({Tier.DISK: 128})),
        (
            KVTIER.format(0, "32.0") + KVTIER_DISK.format(0, "64.0"),
            EngineTokens({Tier.CPU: 32, Tier.DISK: 64}),
        ),
        # a store of all engines is there once, whichever of a pod's engines tells of it
        (
            KVTIER_DISK.replace("_disk_", "_remote_").format(0, "64.0")
            + KVTIER_DISK.replace("_disk_", "_remote_").format(1, "64.0"),
            EngineTokens({Tier.REMOTE: 64}),
        ),
        (KVTIER.format(0, "32.0") + GROWING.format(1), EngineTokens()),
        (KVTIER.format(0, "32.0") + GROWING.format(0), EngineTokens({Tier.CPU: 32})),
        ("this is } no metric\n" + KVTIER.format(0, "32.0"), EngineTokens({Tier.CPU: 32})),
    ],
)
def test_sizes_are_read_from_an_engine_s_metrics(text: str, tokens: EngineTokens) -> None:
    assert said("# HELP x y\n# TYPE x gauge\nx 1\n" + text)[0] == tokens


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("", {}),
        (PINNED.format(0, 64) + PINNED.format(1, 32), {Tier.CPU: TierFindings(pinned_bytes=96)}),
        (PINNED.format(0, 0), {Tier.CPU: TierFindings(pinned_bytes=0)}),
        (PINNED.format(0, 64) + GROWING.format(1), {}),
        (PAYS.format(0), {Tier.DISK: TierFindings(pays=False)}),
        (PAYS.format(1), {Tier.DISK: TierFindings(pays=True)}),
    ],
)
def test_what_engines_found_out_is_read_from_their_metrics(text: str, findings: EngineFindings) -> None:
    assert said(text)[1] == findings


@pytest.mark.parametrize(
    "text",
    [
        "vllm:cache_config_info{} what\n",
        *(
            f"vllm:kvtier_{name} {value}\n"
            for name in METRICS
            for value in ("NaN", "+Inf", "-Inf", "1e30", "-5")
        ),
    ],
)
def test_what_is_no_metric_of_a_tier_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        said(text)


def test_engines_of_one_spec_differ_a_little_and_that_changes_nothing() -> None:
    first = merge_observations(None, EngineObservation("a", EngineTokens({Tier.GPU: 1000})))
    assert merge_observations(first, EngineObservation("a", EngineTokens({Tier.GPU: 1050}))) == first
    assert merge_observations(first, EngineObservation("a", EngineTokens())) == first
    assert (
        merge_observations(first, EngineObservation("a", EngineTokens({Tier.GPU: 1051}))).tokens.by_tier[
            Tier.GPU
        ]
        == 1051
    )
    block = merge_observations(first, EngineObservation("a", EngineTokens({Tier.GPU: 1000}, block=784)))
    assert (block.tokens.block, merge_observations(block, first)) == (784, block)
    assert merge_observations(block, EngineObservation("a", EngineTokens(block=800))).tokens.block == 800
    both = merge_observations(
        first, EngineObservation("a", EngineTokens({Tier.GPU: 990, Tier.CPU: 5000, Tier.DISK: 9000}))
    )
    assert both.tokens == EngineTokens({Tier.GPU: 1000, Tier.CPU: 5000, Tier.DISK: 9000})
    assert merge_observations(both, EngineObservation("a", EngineTokens({Tier.DISK: 9400}))) == both
    assert (
        merge_observations(both, EngineObservation("a", EngineTokens({Tier.DISK: 4500}))).tokens.by_tier[
            Tier.DISK
        ]
        == 4500
    )
    assert (first.complete, both.complete) == (False, True)


def test_whether_a_disk_pays_is_asked_again_and_sizes_are_not() -> None:
    sizes = EngineTokens({Tier.GPU: 1000, Tier.CPU: 5000, Tier.DISK: 9000})
    first = EngineObservation("a", sizes, findings(1000, pays=True))
    assert (first.complete, first.may_change) == (True, True)
    again = merge_observations(
        first,
        EngineObservation("a", sizes, findings(980, pays=False)),
    )
    assert again == EngineObservation("a", sizes, findings(1000, pays=False))
    assert merge_observations(again, EngineObservation("a", sizes)) == again, (
        "an engine that has just started does not say yet"
    )
    assert not EngineObservation("a", sizes, {Tier.CPU: TierFindings(pinned_bytes=1000)}).may_change


def test_engines_of_another_spec_are_another_matter() -> None:
    first = EngineObservation("a", EngineTokens({Tier.GPU: 1000, Tier.CPU: 5000}))
    assert merge_observations(
        first, EngineObservation("b", EngineTokens({Tier.GPU: 1001}))
    ) == EngineObservation("b", EngineTokens({Tier.GPU: 1001}))


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"spec.replicas": 7}, True),
        ({"spec.autoscaling": {"maxReplicas": 8}}, True),
        ({"spec.router.weights.queue": 3}, True),
        ({"spec.observability.dashboard": True}, True),
        ({"spec.tiers.cpu.capacity": "50Gi"}, False),
        ({"spec.engine.blockSize": 32}, False),
    ],
)
def test_only_what_engines_are_made_of_counts(changes: dict[str, object], same: bool) -> None:
    before, after = (hash_engine(orjson.dumps(document(each))) for each in ({}, changes))
    assert (before == after) is same


def test_what_another_operator_saw_is_taken_over() -> None:
    resources = {
        "gpu": {"tokens": 7, "source": "CachedPlan", "blockTokens": 32},
        "cpu": {"tokens": 9, "source": "Observed", "pinnedBytes": 900},
        "disk": {"tokens": 11, "source": "Observed", "pays": False},
    }
    status = {"observedGeneration": 3, "tiers": resources}
    seen = findings(900, pays=False)
    assert observation_from_status(status, 3, "a") == EngineObservation(
        "a", EngineTokens({Tier.CPU: 9, Tier.DISK: 11}, block=32), seen
    )
    assert observation_from_status(status, 4, "a") is None, "of an older spec"
    assert observation_from_status({"observedGeneration": 3}, 3, "a") is None


def test_of_prefixes_those_of_the_resource_are_read() -> None:
    text = """\
kvtier_prefix_tokens{prefix="tools"} 1200.0
kvtier_prefix_cached_tokens{prefix="tools"} 1184.0
kvtier_prefix_tokens{prefix="untold"} 7.0
kvtier_prefix_tokens{prefix="another's"} 9.0
"""
    families = read_families(text.encode(), READ)
    assert read_prefixes(families, ("tools", "untold", "late")) == {
        "tools": PrefixFindings(1200, 1184),
        "untold": PrefixFindings(7),
    }


def test_engines_are_asked_again_until_they_have_all_prefixes() -> None:
    tokens = EngineTokens({Tier.GPU: 1, Tier.CPU: 2})
    lacking = EngineObservation("a", tokens, lacks_prefixes=True)
    assert lacking.complete
    assert lacking.may_change
    told = EngineObservation("a", tokens, prefixes={"tools": PrefixFindings(1200, 0)})
    merged = merge_observations(lacking, told)
    assert (merged.prefixes, merged.may_change) == (told.prefixes, False)
    # what it found when it asked first stays: it finds all of it from then on
    again = EngineObservation("a", tokens, prefixes={"tools": PrefixFindings(1200, 1184)})
    assert merge_observations(merged, again) == merged


def test_prefixes_are_restored_from_a_status() -> None:
    tiers = {"gpu": {"tokens": 1, "source": "Observed"}}
    told = [{"name": "tools", "tokens": 1200, "cachedTokens": 0}, {"name": "late"}]
    status = {"observedGeneration": 3, "tiers": tiers, "prefixes": told}
    restored = observation_from_status(status, 3, "a")
    assert restored is not None
    assert restored.prefixes == {"tools": PrefixFindings(1200, 0)}
    assert restored.lacks_prefixes
