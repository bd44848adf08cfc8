"""Names as Kubernetes has them, as parts of regular expressions (k8s.io/apimachinery, util/validation)."""

from typing import Final

LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A namespace's, and each part of a host name; 63 characters at most."""
SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
"""Most objects'; 253 characters at most."""
LABEL_PATTERN: Final = f"^{LABEL}$"
SUBDOMAIN_PATTERN: Final = f"^{SUBDOMAIN}$"
