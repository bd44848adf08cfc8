"""The operator's own objects, one a file: what the chart and the manifests install."""

from typing import Any

from kvtier_operator.install.admission.admission_policy import admission_policy, admission_policy_binding
from kvtier_operator.install.deployment import deployment
from kvtier_operator.install.namespace import namespace
from kvtier_operator.install.rbac.cluster_role import cluster_role
from kvtier_operator.install.rbac.cluster_role_binding import cluster_role_binding
from kvtier_operator.install.rbac.rules import EVERYTHING
from kvtier_operator.install.rbac.service_account import service_account
from kvtier_operator.install.rbac.user_roles import edit_role, view_role
from kvtier_operator.install.service import service
from kvtier_operator.install.settings import Installation


def install_objects(install: Installation) -> tuple[dict[str, Any], ...]:
    """The objects of an operator for the whole cluster, without the CRD, in the order to apply them."""
    return (
        namespace(install),
        service_account(install),
        cluster_role(install, EVERYTHING),
        cluster_role_binding(install),
        view_role(install),
        admission_policy(install),
        admission_policy_binding(install),
        edit_role(install),
        service(install),
        deployment(install),
    )
