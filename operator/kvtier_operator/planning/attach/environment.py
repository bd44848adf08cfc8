"""Variables of an engine that is given tiers: the payload in front of what Python finds, and its plug-in."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from kvtier_connector.payload import ATTACH_VARIABLE, PLUGINS, SEARCH_PATH, with_plugin
from kvtier_operator.planning.attach.left_alone import LeftAloneError, Reason

AS_ELSEWHERE: Final = f"$({SEARCH_PATH})"
"""What envFrom says of the variable, put in by the kubelet; stays so, a folder that is nowhere, where it
says nothing. Source: k8s.io/kubernetes, pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables."""


def attached_environment(
    variables: list[Any], settings: str, brought: Mapping[str, str], *, from_elsewhere: bool = False
) -> list[Any]:
    """A container's variables with those that bring the tiers; all others stay, in their order.

    Args:
        variables: As in a container; of one name the last counts.
        settings: Value of KVTIER_ATTACH.
        brought: Further ones, PYTHONPATH among them; of those that are there it alone is added to.
        from_elsewhere: Whether the container has more by envFrom, which nobody can read here.

    Raises:
        LeftAloneError: One that has to be added to comes from elsewhere, or is no variable.
    """
    if not all(
        isinstance(variable, Mapping)
        and isinstance(variable.get("name"), str)
        and not isinstance(variable.get("value"), Mapping | list)
        for variable in variables
    ):
        raise LeftAloneError(Reason.NOT_UNDERSTOOD, "the env of its container is not a list of variables")
    attached, places = [*variables], {variable.get("name"): place for place, variable in enumerate(variables)}
    payload = brought[SEARCH_PATH]
    for name, add in ((SEARCH_PATH, partial(_in_front, payload)), (PLUGINS, with_plugin)):
        if name not in places:
            continue
        variable = variables[places[name]]
        if "valueFrom" in variable:
            raise LeftAloneError(
                Reason.UNREADABLE_VARIABLE,
                f"{name} comes from elsewhere (valueFrom), and has to be added to: write its value here",
            )
        attached[places[name]] = {**variable, "value": add(str(variable.get("value") or ""))}
    wanted = {ATTACH_VARIABLE: settings, **brought}
    if from_elsewhere:
        wanted[SEARCH_PATH] = _in_front(payload, AS_ELSEWHERE)
    return [
        *attached,
        *({"name": name, "value": value} for name, value in wanted.items() if name not in places),
    ]


def _in_front(payload: str, value: str) -> str:
    return f"{payload}:{value}" if value else payload
