"""KVCacheTiers on an API server."""

import json
from typing import Any

from kubernetes import client

from kvtier_operator.api.resource import GROUP, VERSION
from kvtier_operator.api.schema.crd import PLURAL

Document = dict[str, Any]


class RefusedError(Exception):
    """The API server refused an object; `message` is what a user of kubectl reads."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class KVCacheTiers:
    """Creates, reads and changes KVCacheTiers in one namespace, as strictly as kubectl does."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self._objects = client.CustomObjectsApi(api)
        self._place = {"group": GROUP, "version": VERSION, "plural": PLURAL, "namespace": namespace}

    def create(self, document: Document, *, dry_run: bool = False) -> Document:
        """Creates the object; a dry run only validates and fills in defaults."""
        options = {"dry_run": "All"} if dry_run else {}
        namespace = document["metadata"].get("namespace", self._place["namespace"])
        return self._call(
            "create_namespaced_custom_object",
            body=document,
            field_validation="Strict",
            namespace=namespace,
            **options,
        )

    def replace(self, document: Document, *, subresource: str = "") -> Document:
        """Replaces the object, or its status or scale."""
        name = document["metadata"]["name"]
        call = f"replace_namespaced_custom_object{subresource and f'_{subresource}'}"
        return self._call(call, name=name, body=document)

    def get(self, name: str, *, subresource: str = "") -> Document:
        """The object, or its status or scale."""
        return self._call(f"get_namespaced_custom_object{subresource and f'_{subresource}'}", name=name)

    def delete(self, name: str) -> None:
        """Deletes the object."""
        self._call("delete_namespaced_custom_object", name=name)

    def _call(self, method: str, **arguments: object) -> Document:
        try:
            answer: Document = getattr(self._objects, method)(**{**self._place, **arguments})
        except client.ApiException as error:
            if error.status not in (400, 422):
                raise
            raise RefusedError(json.loads(error.body)["message"]) from error
        return answer
