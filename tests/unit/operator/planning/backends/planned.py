"""Plans one backend for a resource that is written as changes to the minimal one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cases.kvcachetier import document

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.backends import plan_backend
from kvtier_operator.planning.base.tier_plan import BackendPlan
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.observed import Observed

GIB = 1 << 30
MODELS = Path(__file__).parents[4] / "cases" / "models"


def resource(changes: Mapping[str, object]) -> KVCacheTier:
    return parse_resource(document(changes), "test")


def planned(changes: Mapping[str, object], observed: Observed | None = None) -> BackendPlan:
    spec = resource(changes).planned_spec
    return plan_backend(spec, resolve_geometry(spec, observed or Observed()))


def published(model: str) -> Observed:
    """The published configuration of a model of tests/cases/models."""
    return Observed(model_config=json.loads((MODELS / model / "config.json").read_text(encoding="utf-8")))


def transfer_config(plan: BackendPlan) -> dict[str, Any]:
    name, value = plan.args
    assert name == "--kv-transfer-config"
    config: dict[str, Any] = json.loads(value)
    return config


def extra_config(plan: BackendPlan) -> dict[str, Any]:
    extra: dict[str, Any] = transfer_config(plan)["kv_connector_extra_config"]
    return extra
