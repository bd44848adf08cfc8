"""The chart's values about what the cluster's owner lets KVCacheTiers ask for."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from kvtier_operator.generate.chart.model import ChartModel
from kvtier_operator.planning.base.owner_policy import ALLOW, DENY, ENTRIES

_Switch = Literal["allow", "deny"]


def _or_list(limit: str) -> Any:  # noqa: ANN401 - pydantic's own type
    """JSON Schema asks for the pattern of texts alone, so that Helm names the one wrong entry."""
    items = {"type": "string", "pattern": ENTRIES[limit].pattern}
    return WithJsonSchema({"type": ["string", "array"], "pattern": f"^({ALLOW}|{DENY})$", "items": items})


def _limit(what: str) -> Any:  # noqa: ANN401 - pydantic's own signature
    return Field("allow", description=what)


class OwnerLimits(ChartModel):
    """What the operator lets KVCacheTiers ask for: allow, deny or a list of what is allowed."""

    host_path: Annotated[str | list[str], _or_list("host_path")] = _limit(
        "Folders of the node, without what is below them: [/mnt/nvme0]."
    )
    root_engines: _Switch = _limit(
        "Engines that are root, which hostPath, memlock Require and a podTemplate make them: allow or deny."
    )
    ipc_lock: _Switch = _limit("The capability IPC_LOCK, which memlock Require takes: allow or deny.")
    images: Annotated[str | list[str], _or_list("images")] = _limit(
        "Images that resources name, by repository or a start of it that ends in /: [registry.example/team/]."
    )
    host_names: Annotated[str | list[str], _or_list("host_names")] = _limit(
        "Host names of routes: [llm.example.com, '*.team.example.com']; deny: no routes."
    )
    foreign_gateways: Annotated[str | list[str], _or_list("foreign_gateways")] = _limit(
        "Gateways of other namespaces: [NAMESPACE] or [NAMESPACE/NAME]."
    )
    pod_templates: _Switch = _limit(
        "What a podTemplate adds to pods, service accounts and sidecars among it: allow or deny."
    )
