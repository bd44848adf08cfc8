"""The part of a gateway's controller that routes wait for: it says of each that its Gateways take it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from tests.cases.routes import condition
from tests.cluster.harness.api.connection import Connection, WatchEndedError, collection

_NAME: Final = "kvtier.dev/stand-in"


@asynccontextmanager
async def running_gateway_controller(connection: Connection) -> AsyncIterator[None]:
    """Answers for every Gateway that an HTTPRoute names, as long as the context lasts.

    InferencePools are left alone, as some controllers do.
    """
    answering = asyncio.create_task(_answer(connection))
    try:
        yield
    finally:
        answering.cancel()
        with suppress(asyncio.CancelledError):
            await answering


async def _answer(connection: Connection) -> None:
    while True:
        with suppress(WatchEndedError):
            async for kind, route in connection.events(collection("HTTPRoute")):
                if kind != "DELETED" and not _is_answered(route):
                    await _take(connection, route)


def _is_answered(route: Mapping[str, Any]) -> bool:
    generation = route["metadata"]["generation"]
    parents = route.get("status", {}).get("parents", ())
    said = [condition["observedGeneration"] for parent in parents for condition in parent["conditions"]]
    return bool(said) and all(each == generation for each in said)


async def _take(connection: Connection, route: Mapping[str, Any]) -> None:
    metadata = route["metadata"]
    types = ("Accepted", "ResolvedRefs")
    conditions = [condition(kind, generation=metadata["generation"]) for kind in types]
    parents = [
        {"parentRef": reference, "controllerName": _NAME, "conditions": conditions}
        for reference in route["spec"]["parentRefs"]
    ]
    path = f"{collection('HTTPRoute', metadata['namespace'])}/{metadata['name']}/status"
    try:
        await connection.request("PATCH", path, {"status": {"parents": parents}})
    except aiohttp.ClientResponseError as error:
        if error.status != HTTPStatus.NOT_FOUND:  # it went meanwhile
            raise
