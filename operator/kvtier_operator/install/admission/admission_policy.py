"""ValidatingAdmissionPolicy: what a KVCacheTier asks for, whoever writes it must be allowed."""

from typing import Any, Final

from kvtier_operator.api.resource import GROUP, VERSION
from kvtier_operator.api.schema.crd import PLURAL
from kvtier_operator.install.admission.powers import POWERS, Power
from kvtier_operator.install.settings import Install

_API: Final = "admissionregistration.k8s.io/v1"


def admission_policy(install: Install) -> dict[str, Any]:
    """Of creations and changes of the resource itself; its subresources status and scale are left alone.

    An update that changes nothing of what it has to justify passes, such as a label or a finalizer's end.
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
            "validations": [_validation(each) for each in POWERS],
        },
    }


def _validation(power: Power) -> dict[str, str]:
    """The API server falls back to the message where its expression fails."""
    told = {"messageExpression": said} if (said := power.message_expression) else {}
    return {"expression": power.expression, "message": power.message, **told, "reason": "Forbidden"}


def admission_policy_binding(install: Install) -> dict[str, Any]:
    """In every namespace: also one that this operator does not serve may be another's."""
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": install.cluster_metadata(),
        "spec": {"policyName": install.name, "validationActions": ["Deny"]},
    }
