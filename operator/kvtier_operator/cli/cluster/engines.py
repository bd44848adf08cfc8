"""Tells every engine of a resource something: the connector's control program, run in each of their pods."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.errors import KvtierError, MalformedError, PermanentError
from kvtier_common.formats.json_text import parse_json_object
from kvtier_common.kubernetes.answers import Document, ForbiddenError
from kvtier_common.kubernetes.container_command import Container, Ended
from kvtier_common.one_line import one_line
from kvtier_connector.payload import CONTROL_PATH, CONTROL_PROGRAM
from kvtier_operator.api.spec.tiers import DEFAULT_BACKEND, Ability, backends_with, one_of
from kvtier_operator.cli.cluster.order import Order
from kvtier_operator.cli.cluster.reader import Reader
from kvtier_operator.cli.cluster.resource import component_of, is_of
from kvtier_operator.planning.base.kept import ATTACHED_CONTROL_FOLDER
from kvtier_operator.planning.base.names import Component
from kvtier_operator.planning.objects.engine.containers import ENGINE_NAME
from kvtier_operator.reconcile.facts.metrics_endpoint import metrics_endpoint

_WITH_INPUT: Final = 'count=$1; shift; head -c "$count" | "$@"'
"""Standard input of a container has no end (kvtier_common.kubernetes.container_command)."""
_USUAL_PORT: Final = 8000
_MOST_CHARACTERS: Final = 400
_RANK: Final = "rank"
_LATE_S: Final = 30.0
"""The program ends by itself before it is given up."""


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """What became of it in one pod."""

    pod: str
    # what each of its engines says, as the control program has it; none where that could not be run
    said: tuple[Mapping[str, Any], ...] = ()
    trouble: str = ""  # why it was not done, one line; empty where it was

    def lines(self) -> list[str]:
        """For a person: one for each engine that did it, or what went wrong."""
        if self.trouble:
            return [f"{self.pod}: {self.trouble}"]
        return [f"{self.pod}: {', '.join(_figures(engine)) or 'done'}" for engine in self.said or ({},)]

    def notes(self) -> list[str]:
        """What is to be known of all engines alike, a line each."""
        said = (engine.get("note") for engine in self.said)
        return [one_line(note, _MOST_CHARACTERS) for note in said if isinstance(note, str)]

    def fields(self) -> dict[str, Any]:
        """As `-o json` has it."""
        return {"pod": self.pod, "engines": [*self.said], "error": self.trouble or None}


def _figures(said: Mapping[str, Any], of: str = "") -> Iterator[str]:
    """What counts in an answer, such as `tokens 1,200`, or `cleared cpu 12` of a tier."""
    for name, value in said.items():
        words = f"{of} {name.replace('_', ' ')}".strip()
        if isinstance(value, Mapping):
            yield from _figures(value, words)
        elif isinstance(value, int | float) and not isinstance(value, bool) and name != _RANK:
            yield f"{words} {value:,}"


class NoEnginesError(PermanentError):
    """There is nobody to tell."""


async def tell_engines(
    reader: Reader, namespace: str, name: str, order: Order
) -> AsyncIterator[EngineAnswer]:
    """Tell every engine pod of a resource, several at a time; yields answers as they come.

    Raises:
        KvtierError: As of `Reader.document`. NoEnginesError: there are no engines, or they cannot be told.
            ForbiddenError: the user may not run programs in pods.
    """
    resource = await reader.document(namespace, name)
    backend = (resource.get("spec") or {}).get("backend", DEFAULT_BACKEND)
    able = backends_with(Ability.KEEPS)
    if backend not in able:
        raise NoEnginesError(f"{namespace}/{name} has backend {backend}: only {one_of(able)} can be told")
    pods = [pod for pod in await reader.pods_of(resource) if _is_engine(resource, pod)]
    if not pods:
        raise NoEnginesError(f"{namespace}/{name} has no engine pod: see kvtier status {name} -n {namespace}")
    tasks = [asyncio.create_task(_tell(reader, resource, pod, order)) for pod in pods]
    try:
        for answer in asyncio.as_completed(tasks):
            yield await answer
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_engine(resource: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    ended = (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    return not ended and is_of(resource, pod) and component_of(pod) == Component.ENGINE


async def _tell(reader: Reader, resource: Document, pod: Document, order: Order) -> EngineAnswer:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    if (pod.get("status") or {}).get("phase") != "Running":
        return EngineAnswer(name, trouble="does not run yet: try again when it does")
    container, command = _command(resource, pod, order)
    try:
        ended = await reader.run(
            Container(namespace, name, container), command, order.stdin, limit_s=order.limit_s + _LATE_S
        )
    except ForbiddenError as error:
        raise ForbiddenError(
            f"you may not run programs in pods of namespace {namespace}: have the cluster's owner give you "
            "get and create on pods/exec there, as Kubernetes' role edit has"
        ) from error
    except KvtierError as error:
        return EngineAnswer(name, trouble=one_line(str(error), _MOST_CHARACTERS))
    return _answer(name, ended)


def _answer(pod: str, ended: Ended) -> EngineAnswer:
    """The program writes a JSON object for each engine, and at last one line of what went wrong."""
    said = []
    for line in ended.output.splitlines():
        with suppress(MalformedError):
            said.append(parse_json_object(line))
    if ended.exit_code == 0:
        return EngineAnswer(pod, (*said,))
    lines = ended.errors.strip().splitlines()
    reason = lines[-1] if lines else f"the control program ended with exit code {ended.exit_code}"
    return EngineAnswer(pod, (*said,), one_line(reason, _MOST_CHARACTERS))


def _command(resource: Mapping[str, Any], pod: Mapping[str, Any], order: Order) -> tuple[str, list[str]]:
    """The engine's container, and what is run there."""
    endpoint = metrics_endpoint(pod)
    if endpoint is not None:
        container, port, folder = endpoint.container, endpoint.port, ATTACHED_CONTROL_FOLDER
    else:
        engine = (resource.get("spec") or {}).get("engine") or {}
        container, port, folder = ENGINE_NAME, engine.get("port", _USUAL_PORT), CONTROL_PATH
    where = ["--path", folder, "--port", str(port), "--timeout", f"{order.limit_s:.0f}"]
    program = ["python3", "-m", CONTROL_PROGRAM, *where, *order.arguments]
    if not order.stdin:
        return container, program
    return container, ["/bin/sh", "-c", _WITH_INPUT, "sh", str(len(order.stdin)), *program]
