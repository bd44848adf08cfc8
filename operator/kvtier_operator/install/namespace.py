"""Namespace of the operator."""

from typing import Any, Final

from kvtier_operator.install.settings import Installation

_LEVEL: Final = "restricted"


def namespace(install: Installation) -> dict[str, Any]:
    """Nothing but restricted pods may run beside the operator (Pod Security Admission)."""
    modes = {f"pod-security.kubernetes.io/{mode}": _LEVEL for mode in ("enforce", "warn", "audit")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": install.namespace, "labels": {"app.kubernetes.io/part-of": "kvtier", **modes}},
    }
