"""CRDs: installing them and waiting until they can be used."""

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
        conditions = {each.type: each for each in (status and status.conditions) or ()}
        if "Established" in conditions and conditions["Established"].status == "True":
            return conditions
    raise RuntimeError(f"{name} is not established: {conditions}")
