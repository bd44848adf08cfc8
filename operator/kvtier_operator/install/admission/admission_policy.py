"""ValidatingAdmissionPolicy: nobody gets by a KVCacheTier what they have no right to."""

from typing import Any, Final

from kvtier_operator.api.resource import GROUP, VERSION
from kvtier_operator.api.schema.crd import PLURAL
from kvtier_operator.install.admission.privileges import PRIVILEGES, Privilege
from kvtier_operator.install.settings import Installation

_API: Final = "admissionregistration.k8s.io/v1"


def admission_policy(install: Installation) -> dict[str, Any]:
    """Checks creations and updates of the resource itself, not of its subresources status and scale.

    An update that changes none of the protected fields passes, such as one of a label or a finalizer.
    """
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": install.cluster_metadata(),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [GROUP],
                        "apiVersions": [VERSION],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [PLURAL],
                    }
                ]
            },
            "validations": [_validation(each) for each in PRIVILEGES],
        },
    }


def _validation(privilege: Privilege) -> dict[str, str]:
    """The API server falls back to the message where its expression fails."""
    by_expression = {"messageExpression": expression} if (expression := privilege.message_expression) else {}
    return {
        "expression": privilege.expression,
        "message": privilege.message,
        **by_expression,
        "reason": "Forbidden",
    }


def admission_policy_binding(install: Installation) -> dict[str, Any]:
    """In every namespace: also one that this operator does not serve may be another's."""
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": install.cluster_metadata(),
        "spec": {"policyName": install.name, "validationActions": ["Deny"]},
    }
