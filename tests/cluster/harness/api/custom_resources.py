"""CRDs: installing them and waiting until they can be used."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kubernetes import client, watch

_TIMEOUT_S = 30


def install(api: client.ApiClient, definition: dict[str, Any]) -> dict[str, Any]:
    """Creates a CRD and waits until it is Established; returns its conditions as {type: condition}.

    Raises:
        RuntimeError: It was not established in time; the message has the conditions.
    """
    extensions = client.ApiextensionsV1Api(api)
    name = definition["metadata"]["name"]
    extensions.create_custom_resource_definition(definition, field_validation="Strict")
    conditions: dict[str, Any] = {}
    events = watch.Watch().stream(
        extensions.list_custom_resource_definition,
        field_selector=f"metadata.name={name}",
        timeout_seconds=_TIMEOUT_S,
    )
    for event in events:
        status = event["object"].status
        conditions = {status.type: status for status in (status and status.conditions) or ()}
        if "Established" in conditions and conditions["Established"].status == "True":
            return conditions
    raise RuntimeError(f"{name} is not established: {conditions}")


@contextmanager
def install_definitions(api: client.ApiClient, definitions: Iterable[dict[str, Any]]) -> Iterator[None]:
    """CRDs for as long as the context lasts; afterwards they can be installed anew."""
    extensions = client.ApiextensionsV1Api(api)
    names = {definition["metadata"]["name"]: install(api, definition) for definition in definitions}
    try:
        yield
    finally:
        for name in names:
            extensions.delete_custom_resource_definition(name)
        for name in names:
            _until_gone(extensions, name)


def _until_gone(extensions: client.ApiextensionsV1Api, name: str) -> None:
    """Raises RuntimeError if it is not in time."""
    only = {"field_selector": f"metadata.name={name}"}
    listed = extensions.list_custom_resource_definition(**only)
    events = watch.Watch().stream(
        extensions.list_custom_resource_definition,
        **only,
        resource_version=listed.metadata.resource_version,
        timeout_seconds=_TIMEOUT_S,
    )
    if listed.items and not any(event["type"] == "DELETED" for event in events):
        raise RuntimeError(f"{name} does not go")
