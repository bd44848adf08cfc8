"""Plans one backend for a resource that is written as changes to the minimal one."""

import json
from collections.abc import Mapping
from typing import Any

from tests.cases.kvcachetier import document

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.backends import plan_backend
from kvtier_operator.planning.geometry import resolve_geometry
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import BackendPlan

GIB = 1 << 30


def resource(changes: Mapping[str, object]) -> KVCacheTier:
    return parse_resource(document(changes), "test")


def planned(changes: Mapping[str, object]) -> BackendPlan:
    spec = resource(changes).spec
    return plan_backend(spec, resolve_geometry(spec, Observed()))


def transfer_config(plan: BackendPlan) -> dict[str, Any]:
    name, value = plan.args
    assert name == "--kv-transfer-config"
    config: dict[str, Any] = json.loads(value)
    return config


def extra_config(plan: BackendPlan) -> dict[str, Any]:
    extra: dict[str, Any] = transfer_config(plan)["kv_connector_extra_config"]
    return extra
