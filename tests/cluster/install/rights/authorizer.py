"""Questions to the API server's own authorizer about the installed service account."""

from typing import Final

from kubernetes import client
from tests.cases.rights import Right
from tests.cluster.harness.operator.places import OPERATOR, SYSTEM

_SUBJECT: Final = f"system:serviceaccount:{SYSTEM}:{OPERATOR}"
_GROUPS: Final = ("system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}", "system:authenticated")


def may(api: client.ApiClient, right: Right, namespace: str = "") -> bool:
    """Whether the operator may do something in a namespace; in all of them, where none is named."""
    group, resource, verb = right
    resource, _, subresource = resource.partition("/")
    attributes = {
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "verb": verb,
        "namespace": namespace,
    }
    review = {"spec": {"user": _SUBJECT, "groups": list(_GROUPS), "resourceAttributes": attributes}}
    answer = client.AuthorizationV1Api(api).create_subject_access_review(review)
    return bool(answer.status.allowed)
