"""The operator's own objects: what the chart and the manifests install."""

from typing import Any

from kvtier_operator.install.admission import admission_policy, admission_policy_binding
from kvtier_operator.install.deployment import deployment, namespace, service
from kvtier_operator.install.rbac import (
    EVERYTHING,
    cluster_role,
    cluster_role_binding,
    edit_role,
    leader_role,
    leader_role_binding,
    service_account,
    view_role,
)
from kvtier_operator.install.settings import Installation


def install_objects(install: Installation) -> tuple[dict[str, Any], ...]:
    """The objects of an operator for the whole cluster, without the CRD, in the order to apply them."""
    return (
        namespace(install),
        service_account(install),
        cluster_role(install, EVERYTHING),
        cluster_role_binding(install),
        leader_role(install),
        leader_role_binding(install),
        view_role(install),
        admission_policy(install),
        admission_policy_binding(install),
        edit_role(install),
        service(install),
        deployment(install),
    )
