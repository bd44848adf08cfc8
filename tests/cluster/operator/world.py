"""A namespace as a user and the controllers see it: resources, their objects, pods with a status."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest
from kubernetes import client, dynamic, watch
from kubernetes.dynamic.exceptions import NotFoundError
from tests.cases.routes import parent_status
from tests.cluster.harness.operator.shipped import RESTRICTED

from kvtier_operator.api.resource import GROUP, VERSION
from kvtier_operator.api.schema.crd import PLURAL

Document = dict[str, Any]
DEADLINE_S: Final = 45
"""Below the longest back-off, so that what a watch has to bring about is not brought about by it."""
CHILDREN: Final = (
    ("v1", "ServiceAccount"),
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("policy/v1", "PodDisruptionBudget"),
    ("apps/v1", "Deployment"),
)
ROUTE: Final = ("gateway.networking.k8s.io/v1", "HTTPRoute")
POOL: Final = ("inference.networking.k8s.io/v1", "InferencePool")


def create_namespace(api: client.ApiClient, name: str) -> str:
    client.CoreV1Api(api).create_namespace({"metadata": {"name": name, "labels": RESTRICTED}})
    return name


def resource(name: str = "qwen", **spec: object) -> Document:
    """A KVCacheTier of a known model."""
    base = {"model": {"name": "Qwen/Qwen3-32B"}, "replicas": 2, "tiers": {"cpu": {"capacity": "100Gi"}}}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "KVCacheTier",
        "metadata": {"name": name},
        "spec": {**base, **spec},
    }


class World:
    """One namespace."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.core = client.CoreV1Api(api)
        self.apps = client.AppsV1Api(api)
        self._custom = client.CustomObjectsApi(api)
        self._dynamic = dynamic.DynamicClient(api)
        self._place = {"group": GROUP, "version": VERSION, "namespace": namespace, "plural": PLURAL}

    def create(self, document: Document) -> Document:
        created: Document = self._custom.create_namespaced_custom_object(**self._place, body=document)
        return created

    def change(self, name: str = "qwen", **spec: object) -> Document:
        """Merges into the spec; returns the resource as it is then."""
        changed: Document = self._custom.patch_namespaced_custom_object(
            **self._place, name=name, body={"spec": spec}
        )
        return changed

    def scale(self, replicas: int, name: str = "qwen") -> None:
        self._custom.patch_namespaced_custom_object_scale(
            **self._place, name=name, body={"spec": {"replicas": replicas}}
        )

    def get(self, name: str = "qwen") -> Document:
        found: Document = self._custom.get_namespaced_custom_object(**self._place, name=name)
        return found

    def until(
        self,
        is_so: Callable[[Document], object],
        what: str,
        name: str = "qwen",
        deadline_s: int = DEADLINE_S,
    ) -> Document:
        """The resource as soon as something is so."""
        last: Document = {}
        for event in watch.Watch().stream(
            self._custom.list_namespaced_custom_object, **self._place, timeout_seconds=deadline_s
        ):
            if event["object"]["metadata"]["name"] == name:
                last = event["object"]
                if event["type"] != "DELETED" and is_so(last):
                    return last
        pytest.fail(f"no {what} within {deadline_s} s; the status is {last.get('status')}")

    def writes_since(self, before: Document) -> int:
        """How often the namespace's one resource was written after it had been so."""
        version = self.get(before["metadata"]["name"])["metadata"]["resourceVersion"]
        if version == before["metadata"]["resourceVersion"]:
            return 0
        events = watch.Watch().stream(
            self._custom.list_namespaced_custom_object,
            **self._place,
            resource_version=before["metadata"]["resourceVersion"],
            timeout_seconds=DEADLINE_S,
        )
        versions = (event["object"]["metadata"]["resourceVersion"] for event in events)
        return next(count for count, written in enumerate(versions, 1) if written == version)

    def until_condition(
        self, type_: str, *, reason: str = "", status: str = "", name: str = "qwen"
    ) -> Document:
        """A condition of the present generation as soon as it has a reason or status."""

        def found(document: Mapping[str, Any]) -> Document | None:
            each = condition(document, type_)
            current = each and each.get("observedGeneration") == document["metadata"]["generation"]
            fits = each and reason in ("", each["reason"]) and status in ("", each["status"])
            return each if current and fits else None

        document = self.until(found, f"{type_} {reason}{status}", name)
        answer = found(document)
        assert answer
        return answer

    def until_settled(self, name: str = "qwen") -> Document:
        """The resource as soon as its present generation has a status."""
        return self.until(
            lambda document: (
                document.get("status", {}).get("observedGeneration") == document["metadata"]["generation"]
            ),
            "status of this generation",
            name,
        )

    def find(self, api_version: str, kind: str, name: str) -> Document | None:
        """One object; None if it is not there."""
        found = self._dynamic.resources.get(api_version=api_version, kind=kind)
        try:
            document: Document = found.get(name=name, namespace=self.namespace).to_dict()
        except NotFoundError:
            return None
        return document

    def make(self, api_version: str, kind: str, document: Document) -> None:
        """An object that is nobody's but the user's."""
        found = self._dynamic.resources.get(api_version=api_version, kind=kind)
        body = {"apiVersion": api_version, "kind": kind, **document}
        found.create(body=body, namespace=self.namespace)

    def delete(self, api_version: str, kind: str, name: str) -> None:
        self._dynamic.resources.get(api_version=api_version, kind=kind).delete(name, self.namespace)

    def children(self, name: str = "qwen") -> dict[tuple[str, str], Document]:
        """Objects that name the resource as their owner, by kind and name."""
        return {
            (kind, document["metadata"]["name"]): document
            for api_version, kind in CHILDREN
            for document in self._all(api_version, kind)
            for owner in document["metadata"].get("ownerReferences", ())
            if owner["name"] == name
        }

    def until_object(
        self, api_version: str, kind: str, name: str, is_so: Callable[[Document | None], object]
    ) -> Document | None:
        """An object as soon as something is so of it; None stands for its being gone."""
        if is_so(last := self.find(api_version, kind, name)):
            return last
        found = self._dynamic.resources.get(api_version=api_version, kind=kind)
        events = found.watch(namespace=self.namespace, name=name, timeout=DEADLINE_S)
        for event in events:
            last = None if event["type"] == "DELETED" else event["raw_object"]
            if is_so(last):
                return last
        pytest.fail(f"{kind} {name} did not become so within {DEADLINE_S} s; it is {last}")

    def deployment_says(self, name: str, **status: object) -> None:
        """What kube-controller-manager would write."""
        live = self.apps.read_namespaced_deployment(name, self.namespace)
        body = {"status": {"observedGeneration": live.metadata.generation, **status}}
        self.apps.patch_namespaced_deployment_status(name, self.namespace, body)

    def make_ready(self, name: str = "qwen") -> None:
        """Says that all pods of the resource's Deployments are ready."""
        for each in [child for kind, child in self.children(name) if kind == "Deployment"]:
            wanted = self.apps.read_namespaced_deployment(each, self.namespace).spec.replicas
            self.deployment_says(
                each, replicas=wanted, updatedReplicas=wanted, readyReplicas=wanted, availableReplicas=wanted
            )

    def patch(self, api_version: str, kind: str, name: str, body: Document) -> None:
        """Merges into an object, as somebody may."""
        self._dynamic.resources.get(api_version=api_version, kind=kind).patch(
            name=name, namespace=self.namespace, body=body, content_type="application/merge-patch+json"
        )

    def gateway_says(
        self, *conditions: Document, of: tuple[str, str] = ROUTE, name: str = "qwen", gateway: str = "gateway"
    ) -> None:
        """What the controller of a Gateway here would write of a route or pool as it is now."""
        live = self.find(*of, name)
        assert live
        current = {"observedGeneration": live["metadata"]["generation"]}
        entry = parent_status(
            *(condition | current for condition in conditions), gateway=f"{self.namespace}/{gateway}"
        )
        self._dynamic.resources.get(api_version=of[0], kind=of[1]).status.patch(
            name=name,
            namespace=self.namespace,
            body={"status": {"parents": [entry]}},
            content_type="application/merge-patch+json",
        )

    def add_pod(
        self,
        name: str,
        status: Document,
        *,
        owner: str = "qwen",
        component: str = "engine",
        controllers: tuple[Document, ...] | None = None,
    ) -> None:
        """A pod of an engine or picker as its Deployment has it, with a status that a kubelet would write.

        `controllers` are its owners where somebody else made it.
        """
        template = self.find("apps/v1", "Deployment", f"{owner}-{component}")
        assert template
        pod = template["spec"]["template"]
        pod["metadata"]["name"] = name
        owners = [self.replica_set(template)] if controllers is None else [*controllers]
        pod["metadata"]["ownerReferences"] = owners
        self.core.create_namespaced_pod(self.namespace, pod)
        self.core.patch_namespaced_pod_status(name, self.namespace, {"status": status})

    def replica_set(self, deployment: Document, *, owner_uid: str = "") -> Document:
        """A reference to a Deployment's ReplicaSet, which is made where there is none.

        `owner_uid` is what it says owns it, where somebody else made it.
        """
        uid = owner_uid or deployment["metadata"]["uid"]
        name = f"{deployment['metadata']['name']}-{uid[:8]}"
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"]}
        metadata = {"name": name, "ownerReferences": [owner | {"uid": uid, "controller": True}]}
        spec = {key: deployment["spec"][key] for key in ("selector", "template")}
        if (found := self.find("apps/v1", "ReplicaSet", name)) is None:
            self.make("apps/v1", "ReplicaSet", {"metadata": metadata, "spec": {"replicas": 0, **spec}})
            found = self.find("apps/v1", "ReplicaSet", name)
        assert found
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": True}
        return reference | {"uid": found["metadata"]["uid"]}

    def versions(self) -> dict[tuple[str, str], str]:
        """Of all objects here that an operator writes, Events included."""
        kinds = (*CHILDREN, (f"{GROUP}/{VERSION}", "KVCacheTier"), ("v1", "Event"))
        return {
            (kind, document["metadata"]["name"]): document["metadata"]["resourceVersion"]
            for api_version, kind in kinds
            for document in self._all(api_version, kind)
        }

    def events(self) -> list[tuple[str, str]]:
        """(type, reason) of the Events about resources here."""
        found = self.core.list_namespaced_event(self.namespace).items
        return [(each.type, each.reason) for each in found if each.involved_object.kind == "KVCacheTier"]

    def _all(self, api_version: str, kind: str) -> Iterator[Document]:
        found = self._dynamic.resources.get(api_version=api_version, kind=kind)
        yield from found.get(namespace=self.namespace).to_dict()["items"]


def condition(document: Mapping[str, Any], type_: str) -> Document | None:
    """A condition of a resource."""
    found = document.get("status", {}).get("conditions", ())
    return next((each for each in found if each["type"] == type_), None)
