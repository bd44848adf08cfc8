"""Blocks of addresses, as the API server reads them."""

import re
from ipaddress import ip_network
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from kvtier_operator.api.base import VALIDATIONS, cel_validation

_MOST_CHARACTERS: Final = 43
"""Of the longest: an IPv6 address written out, and the bits."""
_FORM: Final = re.compile(r"[0-9a-fA-F:.]+/(0|[1-9][0-9]{0,2})")
"""Python's own reader also takes masks, zones and bits with a 0 before them."""


def _checked(text: str) -> str:
    try:
        network = ip_network(text, strict=False) if _FORM.fullmatch(text) else None
    except ValueError:
        network = None
    # an IPv4 address in IPv6's clothes matches nothing that comes over IPv4
    if network is None or getattr(network.network_address, "ipv4_mapped", None):
        raise PydanticCustomError("ip_block", "Input should be an address block")
    return text


# isCIDR: Kubernetes 1.30 (k8s.io/apiserver, pkg/cel/environment); a CRD may use it one minor version later.
IPBlock = Annotated[
    str,
    Field(
        max_length=_MOST_CHARACTERS,
        json_schema_extra={
            VALIDATIONS: [
                cel_validation(
                    "isCIDR(self)", "must be an address block such as 10.129.0.0/23 or 2001:db8::/64"
                )
            ]
        },
    ),
    AfterValidator(_checked),
]
"""An address and how many of its bits count, such as `10.129.0.0/23`."""
