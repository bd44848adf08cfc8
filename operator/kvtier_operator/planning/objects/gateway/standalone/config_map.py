"""ConfigMap with Envoy's configuration."""

import json
from typing import Any

from kvtier_operator.api.spec.router import Standalone
from kvtier_operator.planning.envoy.bootstrap import bootstrap
from kvtier_operator.planning.envoy.listener import certificate_resource
from kvtier_operator.planning.objects.gateway.standalone.envoy import (
    BOOTSTRAP_FILE,
    CERTIFICATE_FILE,
    CERTIFICATE_FOLDER,
    envoy_gateway,
)
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.router.router_plan import GatewayPlan


def gateway_files(plan: Plan, wanted: Standalone, planned: GatewayPlan) -> dict[str, str]:
    """Text of each file by its name; arguments as of `envoy_gateway`."""
    files = {BOOTSTRAP_FILE: bootstrap(envoy_gateway(plan, wanted, planned))}
    if wanted.tls_secret_name:
        files[CERTIFICATE_FILE] = certificate_resource(CERTIFICATE_FOLDER)
    return {name: json.dumps(content, indent=1) + "\n" for name, content in files.items()}


def gateway_config_map(plan: Plan, files: dict[str, str]) -> dict[str, Any]:
    """The files as Envoy reads them."""
    names = Names.of(plan)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": names.metadata(names.gateway, Component.GATEWAY),
        "data": files,
    }
