"""A new minor of vLLM is two lines, and a file that is generated of its parser."""

import json
from typing import Final

from tests.unit.additions.copied import Copied

_CONNECTOR: Final = "connector/kvtier_connector/supported.py"
_PLANNER: Final = "operator/kvtier_operator/planning/base/vllm_minor.py"
_OPTIONS: Final = "operator/kvtier_operator/planning/arguments/serve_options.json"
_RESOURCE: Final = """
apiVersion: kvtier.dev/v1alpha1
kind: KVCacheTier
metadata: {{name: qwen3-32b}}
spec:
  model: {{name: Qwen/Qwen3-32B}}
  backend: Native
  engine: {{image: "vllm/vllm-openai:v0.{minor}.0", extraArgs: [--toy, "1"]}}
  tiers:
    cpu: {{capacity: 100Gi}}
"""
_PLAN: Final = """
import json
from kvtier_operator.cli.inputs.load import load_resources
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

[(_, resource)] = load_resources(["cr.yaml"])
checks = {check.name: check.outcome.value for check in make_plan(resource, Observed()).checks}
print(json.dumps([checks["engine-image"], checks["known-arguments"]]))
"""


def test_two_lines_and_a_generated_file(copy: Copied) -> None:
    copy.insert(_CONNECTOR, '}\n"""For each minor', ', "0.99": "0.99.0"')
    copy.insert(_PLANNER, ')\n"""Those that kvtier is made for', ", 99")
    options = json.loads((copy.root / _OPTIONS).read_text(encoding="utf-8"))
    options["99"] = {"--toy": {"takes": "int"}}  # as `make generate` writes it with that vLLM
    (copy.root / _OPTIONS).write_text(json.dumps(options), encoding="utf-8")
    changed = copy.changed()

    for minor, outcome in ((99, "Pass"), (98, "Warn")):
        (copy.root / "cr.yaml").write_text(_RESOURCE.format(minor=minor), encoding="utf-8")
        assert json.loads(copy.python("-c", _PLAN)) == [outcome, outcome]
    known = "from kvtier_connector.supported import TESTED_RELEASES; print(TESTED_RELEASES['0.99'])"
    assert copy.python("-c", known) == "0.99.0\n"
    assert changed == {_CONNECTOR, _PLANNER, _OPTIONS}
