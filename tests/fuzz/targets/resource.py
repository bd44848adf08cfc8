"""A KVCacheTier from YAML to its plan."""

from pathlib import Path
from typing import Final

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.cli.inputs.load import read_documents
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

_EXAMPLES: Final = Path(__file__).parents[3] / "docs" / "user-guide" / "examples"
_SECOND: Final = b"""apiVersion: kvtier.dev/v1alpha1
kind: KVCacheTier
metadata: {name: a}
spec:
  model: {name: a/b, geometry: {kvBytesPerToken: 100}}
  backend: LMCache
  engine: {device: cpu, extraArgs: [--dtype, float], env: [{name: A, value: b}]}
  tiers: {cpu: {capacity: 1Gi}, disk: {capacity: 1Ti, volume: {hostPath: {path: /a}}}}
"""
SEEDS: Final = [*(path.read_bytes() for path in sorted(_EXAMPLES.glob("*.yaml"))), _SECOND]


def run(data: bytes) -> None:
    """A plan, or the error that says why not."""
    try:
        for document in read_documents(data, "fuzzed"):
            make_plan(parse_resource(document, "fuzzed"), Observed())
    except InvalidInputError:
        return
