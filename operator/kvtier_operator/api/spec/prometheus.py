"""`spec.autoscaling.prometheus`: how KEDA asks a Prometheus that does not answer everybody.

The names are those of KEDA 2's trigger `prometheus` (pkg/scalers/prometheus_scaler.go and
pkg/scalers/authentication/authentication_types.go); a TriggerAuthentication holds the credentials.
"""

import re
from enum import StrEnum
from typing import Final

from pydantic import Field

from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.formats import DnsLabel, DnsSubdomain

HEADER_PATTERN: Final = "^[A-Za-z][A-Za-z0-9-]*$"
HEADER_VALUE_PATTERN: Final = "^[A-Za-z0-9._~:/@|+-]+$"
"""KEDA joins headers by commas and equals signs."""
_GUARDED: Final = "(?i)(metadata|authorization)"
"""What clouds' metadata servers ask for, lest somebody has another ask in their place."""


class AuthenticationKind(StrEnum):
    """Where KEDA looks for the credentials."""

    NAMESPACED = "TriggerAuthentication"
    CLUSTER = "ClusterTriggerAuthentication"


class AuthMode(StrEnum):
    """How KEDA proves who it is."""

    BEARER = "bearer"
    BASIC = "basic"
    TLS = "tls"
    CUSTOM = "custom"


class AuthenticationRef(ApiModel):
    """A TriggerAuthentication of the resource's namespace, or one of the cluster."""

    name: DnsSubdomain = Field(description="Name of the object, which kvtier neither makes nor reads.")
    kind: AuthenticationKind = Field(AuthenticationKind.NAMESPACED, description="Its kind, of keda.sh.")


class Header(ApiModel):
    """A header of the question."""

    name: str = Field(description="Name of the header.", min_length=1, max_length=64, pattern=HEADER_PATTERN)
    value: str = Field(description="Its value.", min_length=1, max_length=256, pattern=HEADER_VALUE_PATTERN)

    @rule(
        f"!self.name.matches(r'{_GUARDED}')",
        "a header of that name is not passed on; give credentials by authenticationRef",
        field=".name",
    )
    def carries_no_credentials(self) -> bool:
        """KEDA's operator asks from its own place in the cluster."""
        return re.search(_GUARDED, self.name) is None


class PrometheusAccess(ApiModel):
    """What KEDA needs to be answered."""

    authentication_ref: AuthenticationRef | None = Field(
        None, description="KEDA's object with the credentials, and with the CA of an https URL."
    )
    auth_modes: list[AuthMode] = Field(
        default_factory=list,
        description="How the credentials are used (the trigger's authModes); none for the identity of a pod.",
        max_length=4,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    namespace: DnsLabel | None = Field(
        None,
        description="Namespace that the question is about, where the server asks for one, as Thanos does.",
    )
    headers: list[Header] = Field(
        default_factory=list,
        description="Further headers of the question, such as X-Scope-OrgID of Mimir (the trigger's customHeaders).",
        max_length=8,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )

    @rule(
        "!has(self.authModes) || self.authModes.size() == 0 || has(self.authenticationRef)",
        "authModes say how credentials are used: name the object that has them in authenticationRef",
        field=".authModes",
    )
    def modes_have_credentials(self) -> bool:
        """KEDA takes every credential from that object."""
        return not self.auth_modes or self.authentication_ref is not None
