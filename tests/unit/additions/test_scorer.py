"""A new scorer of our picker is a file, its line in the list of scorers, a weight and a plugin's name."""

import json
from typing import Final

from tests.unit.additions.copied import Copied

PACKAGE: Final = "kvtier_scorer.scorers"
_SCORER: Final = """
import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.scorers.columns import Columns


def score_toy(columns: Columns) -> NDArray[np.float64]:
    return np.linspace(0.0, 1.0, len(columns.queue_depth))
"""
_ROUTER: Final = """
  router:
    flavor: builtin
    weights: {queue: 0, kvCacheUtilization: 0, gpuPrefix: 0, cpuPrefix: 0, toy: 7}
"""
_PICK: Final = """
import os, sys
os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiling takes longer than this one pick
import numpy as np
from kvtier_scorer.config.parse import parse_settings
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.scheduling.model import PickRequest, Prompt
from kvtier_scorer.scheduling.pods import PodInfo, PodTable
from kvtier_scorer.scheduling.scheduler import Scheduler

index = PrefixIndex(1 << 20)
table = PodTable(index)
for name in ("a", "b", "c"):
    table.put(PodInfo(name, f"{name}:8000"), {})
scheduler = Scheduler(parse_settings(sys.argv[1]), table, index, np.random.default_rng(0))
request = PickRequest(Prompt("model", "", b"text"))
[best, *_] = scheduler.explain(request, 0.0).pods
print(scheduler.pick(request, 0.0).pod_name, best.total, best.scores["toy"])
"""
_CRD: Final = "import json; from kvtier_operator.api.schema.crd import crd; print(json.dumps(crd()))"


def test_four_files(copy: Copied) -> None:
    package = "scorer/kvtier_scorer"
    copy.write(f"{package}/scorers/toy.py", _SCORER)
    registry = f"{package}/scorers/__init__.py"
    copy.insert(registry, "\nScorer = ", f"from {PACKAGE}.toy import score_toy\n")
    copy.insert(registry, "    QUEUE: score_queue,\n", '    "toy": score_toy,\n')
    names = f"{package}/config/model.py"
    copy.insert(names, '    QUEUE: "queue-scorer",\n', '    "toy": "toy-scorer",\n')
    api = "operator/kvtier_operator/api/spec/router.py"
    copy.insert(
        api,
        "\n    @rule(\n        lambda weights: ",
        '    toy: int = Field(0, description="Weight of the toy scorer.")\n',
    )
    changed = copy.changed()

    minimal = (copy.root / "tests/unit/operator/golden/input/minimal.yaml").read_text(encoding="utf-8")
    copy.write("cr.yaml", minimal + _ROUTER)
    planned = json.loads(copy.kvtier("plan", "--no-hub", "-o", "json", "-f", "cr.yaml"))
    config = planned["router"]["config"]
    assert "- pluginRef: toy-scorer\n    weight: 7\n" in config
    assert "toy-scorer" in copy.kvtier("render", "--no-hub", "-f", "cr.yaml")
    copy.write("other.yaml", minimal + _ROUTER.replace("builtin", "llm-d").replace("queue: 0", "queue: 1"))
    others = json.loads(copy.kvtier("plan", "--no-hub", "-o", "json", "-f", "other.yaml"))
    assert "toy-scorer" not in others["router"]["config"]
    [unread] = [check for check in others["checks"] if check["reason"] == "WeightUnread"]
    assert (unread["outcome"], unread["field"]) == ("Warn", "spec.router.weights.toy")
    assert copy.python("-c", _PICK, config).split() == ["c", "7.0", "1.0"]
    assert "self.kvCacheUtilization + self.toy + " in copy.python("-c", _CRD)
    assert changed == {f"{package}/scorers/toy.py", registry, names, api}
