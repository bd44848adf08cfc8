"""People of a namespace, and what they ask for."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from kubernetes import client
from tests.cluster.harness.api.commands import Command, CommandError

CPU: Final = {"capacity": "1Gi"}
HOST_PATH: Final = {"hostPath": {"path": "/mnt"}}
DISK: Final = {"tiers": {"cpu": CPU, "disk": {"capacity": "1Gi", "volume": HOST_PATH}}}
Person = Callable[..., str]
"""Makes a user: with which of Kubernetes' own roles, and further rights such as `create deployments.apps`."""


def tier(asked: dict[str, Any]) -> str:
    spec = {"model": {"name": "Qwen/Qwen3-32B"}, "tiers": {"cpu": CPU}} | asked
    made = {"apiVersion": "kvtier.dev/v1alpha1", "kind": "KVCacheTier", "metadata": {"name": "asks"}}
    return json.dumps(made | {"spec": spec})


def write(kubectl: Command, namespace: str, user: str, document: str) -> str:
    return kubectl("create", "--namespace", namespace, "--as", user, "--filename", "-", stdin=document)


def make(kubectl: Command, namespace: str, user: str, tier: str) -> None:
    """Makes it and takes it away."""
    write(kubectl, namespace, user, tier)
    kubectl("delete", "kvct", "asks", "--namespace", namespace)


def refusal(kubectl: Command, namespace: str, user: str, tier: str) -> str:
    with pytest.raises(CommandError) as refused:
        write(kubectl, namespace, user, tier)
    return str(refused.value)


def role(name: str, *rights: str) -> str:
    """A Role of rights such as `use kvcachetiers.kvtier.dev/hostpath`."""
    rules = [
        {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
        for verb, resource, group in map(parts, rights)
    ]
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}}
    return json.dumps(head | {"rules": rules})


def parts(right: str) -> tuple[str, str, str]:
    verb, _, what = right.partition(" ")
    whole, _, subresource = what.partition("/")
    resource, _, group = whole.partition(".")
    return verb, f"{resource}/{subresource}" if subresource else resource, group


def may(api: client.ApiClient, namespace: str, user: str, right: str) -> bool:
    verb, whole, group = parts(right)
    resource, _, subresource = whole.partition("/")
    attributes = {
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "verb": verb,
        "namespace": namespace,
    }
    review = {"spec": {"user": user, "resourceAttributes": attributes}}
    return bool(client.AuthorizationV1Api(api).create_subject_access_review(review).status.allowed)
