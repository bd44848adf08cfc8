"""Names as Kubernetes has them, as parts of regular expressions (k8s.io/apimachinery, util/validation)."""

from typing import Annotated, Final, TypeAlias

from pydantic import Field

LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A namespace's, and each part of a host name; 63 characters at most."""
SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
"""Most objects'; 253 characters at most."""
LABEL_PATTERN: Final = f"^{LABEL}$"
SUBDOMAIN_PATTERN: Final = f"^{SUBDOMAIN}$"
DnsLabel: TypeAlias = Annotated[str, Field(min_length=1, max_length=63, pattern=LABEL_PATTERN)]
"""A field that names a namespace, or what is named alike."""
DnsSubdomain: TypeAlias = Annotated[str, Field(min_length=1, max_length=253, pattern=SUBDOMAIN_PATTERN)]
"""A field that names an object."""
