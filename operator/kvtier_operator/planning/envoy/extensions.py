"""Parts that all of Envoy's configuration is made of."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.planning.envoy.gateway import Address

UNLIMITED: Final = "0s"
EXT_PROC: Final = "envoy.filters.http.ext_proc"


def any_of(kind: str) -> dict[str, Any]:
    """The type of a message among Envoy's extensions."""
    return {"@type": f"type.googleapis.com/envoy.extensions.{kind}"}


def extension(name: str, kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """An extension with its settings."""
    return {"name": name, "typed_config": {**any_of(kind), **settings}}


def socket_address(address: Address) -> dict[str, Any]:
    """An address to listen at or to connect to."""
    return {"socket_address": {"address": address.host, "port_value": address.port}}
