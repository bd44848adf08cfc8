"""A new tier is a line in the table of tiers, fields of the API, and what a backend makes of it."""

import json
from typing import Final

from tests.unit.additions.copied import Copied

_SPEC: Final = """
    remote: {capacity: 400Gi}
  router: {flavor: builtin, weights: {queue: 0, kvCacheUtilization: 0, remotePrefix: 3}}
"""
_STATUS: Final = """
import json, pathlib, yaml
from kvtier_operator.planning.observed import Observed
from kvtier_operator.reconcile.cache.resources import CachedResource, Key, ReconcileState
from kvtier_operator.reconcile.loop.plan_resource import ClusterObservation
from kvtier_operator.reconcile.loop.plan_resource import plan_resource

spec = json.dumps(yaml.safe_load(pathlib.Path("cr.yaml").read_text())).encode()
resource = CachedResource("uid", 1, 1, False, spec, b"{}", "", ReconcileState())
plan, desired = plan_resource(Key("default", "qwen3-32b"), resource, ClusterObservation(Observed(), 0, ""))
print(json.dumps([plan.tiers["remote"], plan.router["entries"], len(desired)]))
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
index.store(b, tier_of("REMOTE"), scheduler.pick(request, 0.0).hashes, None)
pick = scheduler.pick(request, 0.0)
print(json.dumps([pick.pod_name, {tier.label: tokens for tier, tokens in pick.matched_tokens.items()}]))
"""


def test_six_files(copy: Copied) -> None:
    table = "connector/kvtier_common/tier.py"
    copy.insert(table, "\n    @property\n    def label", "    REMOTE = 3\n")
    api = "operator/kvtier_operator/api"
    tiers, router, status = f"{api}/spec/tiers.py", f"{api}/spec/router.py", f"{api}/resource.py"
    copy.insert(
        tiers,
        "class TiersSpec(ApiModel):",
        "class RemoteTier(ApiModel):\n    capacity: ByteQuantity\n\n\n",
    )
    copy.insert(tiers, "    def by_tier", "    remote: RemoteTier | None = None\n\n")
    copy.insert(router, '    @rule(\n        "self.queue +', "    remote_prefix: int = 0\n")
    copy.insert(status, "\n\nclass RouterEntries", "    remote: TierStatus | None = None\n")
    copy.insert(status, "\n\nclass RouterStatus", "    remote_prefix: int | None = None\n")
    backend = "operator/kvtier_operator/planning/backends/kvtier.py"
    remote = "spec.tiers.remote.capacity.bytes if spec.tiers.remote else 0"
    copy.insert(
        backend,
        "            Tier.CPU: engine_bytes",
        f"            Tier.REMOTE: ({remote}) // share.ranks,\n",
    )
    copy.insert(backend, "        **disk_settings", f"        remote_capacity_bytes={remote},\n")
    settings = "connector/kvtier_connector/config.py"
    copy.insert(settings, "    layered_loads: bool = False\n", "    remote_capacity_bytes: int = 0\n")
    changed = copy.changed()

    minimal = (copy.root / "tests/unit/operator/golden/input/minimal.yaml").read_text(encoding="utf-8")
    copy.write("cr.yaml", minimal.rstrip("\n") + _SPEC)
    planned = json.loads(copy.kvtier("plan", "--no-hub", "-o", "json", "-f", "cr.yaml"))
    assert planned["tiers"]["remote"]["tokens"] == 4 * planned["tiers"]["cpu"]["tokens"]
    assert planned["router"]["entries"]["remotePrefix"] == 4 * planned["router"]["entries"]["cpuPrefix"]
    assert '"remote_capacity_bytes":429496729600' in " ".join(planned["engine"]["args"])
    assert "remote prefix entries" in copy.kvtier("plan", "--no-hub", "-f", "cr.yaml")
    assert "remote-prefix-cache-scorer" in copy.kvtier("render", "--no-hub", "-f", "cr.yaml")
    [size, entries, objects] = json.loads(copy.python("-c", _STATUS))
    assert (size["bytes"], entries["remotePrefix"]) == (
        429496729600,
        planned["router"]["entries"]["remotePrefix"],
    )
    assert objects
    picked = json.loads(copy.python("-c", _PICK, planned["router"]["config"]))
    assert picked == ["b", {"gpu": 0, "cpu": 0, "remote": 64}]
    assert changed == {table, tiers, router, status, backend, settings}
