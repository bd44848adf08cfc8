"""A namespace that opted in, on a cluster with the policy; what is published there, the test says."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from kubernetes import client, dynamic
from tests.cluster.attach.shapes import planned, tier
from tests.shared.waiting import eventually

from kvtier_operator.install.attachment import (
    attachment_policy,
    attachment_policy_binding,
)
from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.attach.delivery import Delivery
from kvtier_operator.planning.base.names import ATTACH_OPT_IN, ATTACHED, POLICY_VERSIONS

Document = dict[str, Any]
_ACCOUNT: Final = "kube-api-access-"
_KIND: Final = "MutatingAdmissionPolicy"


class Place:
    """One namespace."""

    def __init__(self, api: client.ApiClient, namespace: str, labels: dict[str, str] | None = None) -> None:
        self.namespace = namespace
        self._kinds = dynamic.DynamicClient(api)
        metadata = {"name": namespace, "labels": {**ATTACH_OPT_IN, **(labels or {})}}
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        accounts = client.CoreV1Api(api).list_namespaced_service_account
        eventually(lambda: accounts(namespace).items, f"the service account of {namespace}")

    def create(self, document: Document, *, dry_run: bool = False) -> Document:
        """The object as the server made it, or would."""
        kind = self._kinds.resources.get(api_version=document["apiVersion"], kind=document["kind"])
        options = {"dry_run": "All"} if dry_run else {}
        created: Document = kind.create(
            body=document, namespace=self.namespace if kind.namespaced else None, **options
        ).to_dict()
        return created

    def publish(self, document: Document | None = None, *, generation: int = 0, **attach: object) -> None:
        """Makes a KVCacheTier and what an operator says of it, and waits until pods get that."""
        document = document or tier()
        made = self.create(document)
        status = {
            "observedGeneration": generation or made["metadata"]["generation"],
            "attach": planned(document).status | attach,
        }
        kind = self._kinds.resources.get(api_version=made["apiVersion"], kind=made["kind"])
        kind.status.patch(
            name=made["metadata"]["name"],
            namespace=self.namespace,
            body={"status": status},
            content_type="application/merge-patch+json",
        )


@contextmanager
def installed_policy(api: client.ApiClient) -> Iterator[None]:
    """As the chart installs it, of the version that is served; gone afterwards."""
    kinds = dynamic.DynamicClient(api)
    served = _served(kinds)
    documents = (
        attachment_policy(Installation(), served),
        attachment_policy_binding(Installation(), served),
    )
    for document in documents:
        kinds.resources.get(api_version=served, kind=document["kind"]).create(body=document)
    try:
        yield
    finally:
        for document in documents:
            kind = kinds.resources.get(api_version=served, kind=document["kind"])
            kind.delete(name=document["metadata"]["name"])


@contextmanager
def replaced_policy(api: client.ApiClient, delivery: Delivery) -> Iterator[None]:
    """With the payload brought so by the policy that is installed; as before afterwards."""
    kinds = dynamic.DynamicClient(api)
    kind = kinds.resources.get(api_version=_served(kinds), kind=_KIND)
    name = Installation().name
    before = kind.get(name=name).to_dict()["spec"]
    after = attachment_policy(Installation(), _served(kinds), delivery)["spec"]

    def replace(spec: Document) -> None:
        kind.patch(name=name, body={"spec": spec}, content_type="application/merge-patch+json")

    replace(after)
    try:
        yield
    finally:
        replace(before)


def _served(kinds: dynamic.DynamicClient) -> str:
    return next(
        version for version in POLICY_VERSIONS if kinds.resources.search(api_version=version, kind=_KIND)
    )


def attached_to(document: Document) -> str:
    """The KVCacheTier whose tier a pod has; empty where it has none."""
    name: str = (document["metadata"].get("annotations") or {}).get(ATTACHED, "")
    return name


def without_token(document: Document) -> Document:
    """A pod's spec without the volume of its account's token, whose name is another one each time."""
    spec: Document = copy.deepcopy(document["spec"])
    spec["volumes"] = [volume for volume in spec["volumes"] if not volume["name"].startswith(_ACCOUNT)]
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        mounts = container.get("volumeMounts", ())
        container["volumeMounts"] = [mount for mount in mounts if not mount["name"].startswith(_ACCOUNT)]
    return spec
