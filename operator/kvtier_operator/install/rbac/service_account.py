"""ServiceAccount of the operator."""

from typing import Any

from kvtier_operator.install.settings import Installation


def service_account(install: Installation) -> dict[str, Any]:
    """The operator's pod mounts the token itself; nothing else that runs as this account gets one unasked."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": install.metadata(),
        "automountServiceAccountToken": False,
    }
