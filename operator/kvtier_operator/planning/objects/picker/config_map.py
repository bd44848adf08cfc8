"""ConfigMap with the picker's configuration."""

from typing import Any, Final

from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.plan import Plan

FILE_NAME: Final = "picker.yaml"


def picker_config_map(plan: Plan) -> dict[str, Any]:
    """The EndpointPickerConfig as the plan has it."""
    names = Names.of(plan)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": names.metadata(names.picker, Component.PICKER),
        "data": {FILE_NAME: plan.router.config},
    }
