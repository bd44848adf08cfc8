"""ConfigMap with the operator's own Grafana dashboard."""

from typing import Any, Final

from kvtier_operator.install.monitoring.panels import panels
from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.objects.monitoring.grafana import (
    Dashboard,
    Variable,
    dashboard_object,
)

_UID: Final = "kvtier-operator"
_ALWAYS_THERE: Final = "kvtier_build_info"


def dashboard(install: Installation) -> dict[str, Any]:
    """The same dashboard for every installation: which of them is shown is chosen in Grafana."""
    shown = Dashboard(
        uid=_UID,
        title="kvtier's operator",
        tags=("operator",),
        heading="dashboard-of-the-operator",
        panels=panels(),
        variables=(
            Variable("namespace", "Namespace", f"label_values({_ALWAYS_THERE}, namespace)"),
            Variable("job", "Job", f'label_values({_ALWAYS_THERE}{{namespace="$namespace"}}, job)'),
        ),
    )
    return dashboard_object(install.metadata() | {"name": f"{install.name}-dashboard"}, f"{_UID}.json", shown)
