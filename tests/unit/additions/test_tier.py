"""A new kind of tier is a line in the table of tiers and two files: its fields, and what is true of it."""

import json
from typing import Final

from tests.unit.additions.copied import Copied

_FIELDS: Final = """
from pydantic import Field

from kvtier_operator.api.spec.tiers import Ability, TierFields, TierSpec, ability_rule


class TapeTierSpec(TierSpec):
    url: str


FIELDS = TierFields(
    title="tape",
    status="A library of tapes.",
    tells=("pays",),
    weight=0,
    spec=(TapeTierSpec | None, Field(None, description="A library.")),
    rules=(ability_rule(Ability.TELLS_OF_TIERS, "tape.url", "has a robot"),),
)
"""
_TRAITS: Final = """
from dataclasses import replace

from kvtier_common.tier import Tier
from kvtier_operator.planning.base.promql import Alert
from kvtier_operator.planning.tiers import TierTraits


def serve(spec, geometry, backend):
    wanted = spec.tiers.by_tier()[Tier.TAPE]
    ranks = spec.engine.tensor_parallel_size * spec.engine.data_parallel_size
    return replace(
        backend,
        env={**backend.env, "TOY_URL": wanted.url},
        bytes_per_rank={**backend.bytes_per_rank, Tier.TAPE: wanted.capacity.bytes // ranks},
    )


def alerts(series, tier):
    yield Alert("KVCacheTierTapeAway", series.gauge("toy_away"), 5, "warning", "away", str(tier.tokens))


def panels(series):
    yield ("Tape tier: bytes used", "bytes", {"used": series.gauge("toy_used_bytes")})


def in_use(status):
    return "its tape tier is not used" if status.get("pays") is False else ""


TRAITS = TierTraits(serve=serve, pays="toy_pays", alerts=alerts, panels=panels, in_use=in_use)
"""
_SPEC: Final = """
    tape: {capacity: 400Gi, url: tape://robot}
  router: {flavor: builtin, weights: {queue: 0, kvCacheUtilization: 0, tapePrefix: 3}}
  observability: {prometheusRule: true, dashboard: true}
"""
_STATUS: Final = """
import json, pathlib, yaml
from kvtier_common.metrics.text import read_families
from kvtier_operator.planning.observed import Observed
from kvtier_operator.reconcile.cache.resources import CachedResource, Key, ReconcileState
from kvtier_operator.reconcile.loop.plan_resource import ClusterObservation
from kvtier_operator.reconcile.loop.plan_resource import plan_resource
from kvtier_operator.reconcile.observe.engines import READ, read_tiers
from kvtier_operator.reconcile.status.engines import tiers_in_use

spec = json.dumps(yaml.safe_load(pathlib.Path("cr.yaml").read_text())).encode()
resource = CachedResource("uid", 1, 1, False, spec, b"{}", "", ReconcileState())
findings = read_tiers(read_families(b"toy_pays 0.0\\n", READ))[1]
cluster = ClusterObservation(Observed(), 0, "", engine_findings=findings)
plan, desired = plan_resource(Key("default", "qwen3-32b"), resource, cluster)
print(json.dumps([plan.tiers["tape"], plan.router["entries"], len(desired), tiers_in_use(plan.tiers)]))
"""
_PICK: Final = """
import json, os, sys
os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiling takes longer than this one pick
import numpy as np
from kvtier_common.tier import Tier
from kvtier_scorer.config.parse import parse_settings
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.picker.engines.kv_events.payload import tier_of
from kvtier_scorer.scheduling.model import PickRequest, Prompt
from kvtier_scorer.scheduling.pods import PodInfo, PodTable
from kvtier_scorer.scheduling.scheduler import Scheduler

settings = parse_settings(sys.argv[1])
index = PrefixIndex(1 << 24)
table = PodTable(index)
a, b, c = (table.put(PodInfo(name, f"{name}:8000"), settings.prefix.first_entries) for name in "abc")
scheduler = Scheduler(settings, table, index, np.random.default_rng(0))
request = PickRequest(Prompt("model", "", bytes(16 * 4 * 4)))
index.set_precise(b, precise=True)
index.store(b, tier_of("TAPE"), scheduler.pick(request, 0.0).hashes, None)
pick = scheduler.pick(request, 0.0)
print(json.dumps([pick.pod_name, {tier.label: tokens for tier, tokens in pick.matched_tokens.items()}]))
"""


def test_two_files_and_a_line(copy: Copied) -> None:
    table = "connector/kvtier_common/tier.py"
    copy.replace(table, "    REMOTE = 3,", "    TAPE = 3\n    REMOTE = 4,")  # what engines share comes last
    fields = "operator/kvtier_operator/api/spec/tiers/tape.py"
    copy.write(fields, _FIELDS)
    traits = "operator/kvtier_operator/planning/tiers/tape.py"
    copy.write(traits, _TRAITS)
    changed = copy.changed()

    minimal = (copy.root / "tests/unit/operator/golden/input/minimal.yaml").read_text(encoding="utf-8")
    copy.write("cr.yaml", minimal.rstrip("\n") + _SPEC)
    planned = json.loads(copy.kvtier("plan", "--no-hub", "-o", "json", "-f", "cr.yaml"))
    assert planned["tiers"]["tape"]["tokens"] == 4 * planned["tiers"]["cpu"]["tokens"]
    assert planned["router"]["entries"]["tapePrefix"] == 4 * planned["router"]["entries"]["cpuPrefix"]
    assert planned["engine"]["env"]["TOY_URL"] == "tape://robot"
    assert {"tape tier tokens", "tape tier bytes per rank"} <= {
        figure["name"] for figure in planned["figures"]
    }
    assert "tape prefix entries" in copy.kvtier("plan", "--no-hub", "-v", "-f", "cr.yaml")
    rendered = copy.kvtier("render", "--no-hub", "-f", "cr.yaml")
    for text in ("tape-prefix-cache-scorer", "KVCacheTierTapeAway", "Tape tier: bytes used"):
        assert text in rendered
    described = copy.python("-c", "from kvtier_operator.api.schema.crd import crd; print(crd())")
    for text in (
        "Weight of the tape prefix scorer.",
        "A library of tapes.",
        "self.tapePrefix > 0",
        "KVTier has a robot",
    ):
        assert text in described
    [size, entries, objects, in_use] = json.loads(copy.python("-c", _STATUS))
    assert (size["bytes"], size["pays"], entries["tapePrefix"]) == (
        429496729600,
        False,
        planned["router"]["entries"]["tapePrefix"],
    )
    assert objects
    assert in_use == "its tape tier is not used"
    picked = json.loads(copy.python("-c", _PICK, planned["router"]["config"]))
    assert picked == ["b", {"gpu": 0, "cpu": 0, "tape": 64}]
    assert changed == {table, fields, traits}
