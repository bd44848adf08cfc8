"""Carries a Diff out: looks before it creates, wave by wave, prunes last."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from kvtier_operator.errors import KvtierError
from kvtier_operator.planning.objects.names import COMPONENT_LABEL, Component
from kvtier_operator.reconcile.api_server.client import Api
from kvtier_operator.reconcile.api_server.errors import (
    InvalidObjectError,
    NamespaceTerminatingError,
    NotFoundError,
)
from kvtier_operator.reconcile.api_server.kinds import RUNNING
from kvtier_operator.reconcile.apply.desired import Wanted
from kvtier_operator.reconcile.apply.diff import Diff
from kvtier_operator.reconcile.apply.extra_keys import without_surplus
from kvtier_operator.reconcile.apply.failure import Failure
from kvtier_operator.reconcile.apply.ownership import Taken
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.cache.live_objects import Children
from kvtier_operator.reconcile.metrics import API_ERRORS

_IMMUTABLE: Final = "field is immutable when `immutable` is set"
"""Said of a ConfigMap that somebody set so (k8s.io/kubernetes, pkg/apis/core/validation/validation.go)."""
NAMESPACE_TERMINATING: Final = "NamespaceTerminating"


@dataclass(slots=True)
class Outcome:
    """What came of it.

    Attributes:
        written: Objects written or deleted.
        failures: Objects that are not as wanted, and why.
        errors: What the API server said.
        namespace_ends: Whether the namespace is being deleted, so that nothing can be made there any more.
    """

    written: int = 0
    failures: list[Failure] = field(default_factory=list)
    errors: list[KvtierError] = field(default_factory=list)
    namespace_ends: bool = False

    def failed(self, wanted: Wanted, error: KvtierError) -> None:
        """Notes an error."""
        API_ERRORS.labels(type(error).__name__.removesuffix("Error")).inc()
        self.errors.append(error)
        if not isinstance(error, NamespaceTerminatingError):
            self.failures.append(_failure(wanted, error))
        elif not self.namespace_ends:
            self.namespace_ends = True
            self.failures.append(_ending(wanted.ref.namespace))


class Applier:
    """Applies for all resources."""

    def __init__(self, api: Api, children: Children) -> None:
        self._taken = Taken(api)
        self._writer = Writer(api)
        self._children = children

    async def carry_out(self, diff: Diff, owner_uid: str) -> Outcome:
        """Applies, then prunes.

        Nothing that runs is touched while something that it refers to cannot be made: never half a change.
        """
        outcome = Outcome()
        missing, taken = await self._look(diff.missing, owner_uid, outcome)
        taken = (*diff.foreign, *taken)
        outcome.failures += [_foreign(each) for each in taken]
        if any(each.kind.wave <= RUNNING for each in taken) or outcome.errors:
            return outcome
        to_apply = sorted((*missing, *diff.differing), key=lambda each: each.kind.wave)
        for wave, members in groupby(to_apply, key=lambda each: each.kind.wave):
            await asyncio.gather(*(self._apply(each, outcome) for each in members))
            if outcome.errors and wave <= RUNNING:
                return outcome
        if not outcome.errors:
            await self._prune(diff, outcome)
        return outcome

    async def _look(
        self, missing: Sequence[Wanted], owner_uid: str, outcome: Outcome
    ) -> tuple[tuple[Wanted, ...], tuple[Wanted, ...]]:
        """Which of the missing objects can be made, and which have someone else's object in their place."""
        owners = await asyncio.gather(*(self._owner(each, outcome) for each in missing))
        free = tuple(each for each, owner in zip(missing, owners, strict=True) if owner in (None, owner_uid))
        return free, tuple(each for each in missing if each not in free)

    async def _owner(self, wanted: Wanted, outcome: Outcome) -> str | None:
        """Uid of the owner of the object of that name: empty for someone else's, None where there is none."""
        try:
            return await self._taken.owner(wanted.ref)
        except KvtierError as error:
            outcome.failed(wanted, error)
            return None

    async def _apply(self, wanted: Wanted, outcome: Outcome) -> None:
        try:
            document = await self._write(wanted)
        except KvtierError as error:
            outcome.failed(wanted, error)
            return
        outcome.written += 1
        self._children.written(wanted.kind, document, wanted.digest)

    async def _write(self, wanted: Wanted) -> dict[str, Any]:
        """Applies, and undoes what an apply cannot."""
        body = wanted.body or {}
        try:
            document = await self._writer.apply(wanted)
        except InvalidObjectError as error:
            uid = body["metadata"].get("uid")
            if _IMMUTABLE not in str(error) or wanted.kind.kind != "ConfigMap" or uid is None:
                raise
            await self._writer.delete(wanted.ref, uid)
            document = await self._writer.apply(wanted.anew())
        if patch := without_surplus(document, body):
            precondition = {"metadata": {"uid": document["metadata"]["uid"]}}
            return await self._writer.merge(wanted.ref, patch | precondition)
        return document

    async def _prune(self, diff: Diff, outcome: Outcome) -> None:
        for child in diff.surplus:
            try:
                await self._writer.delete(child.ref, child.uid)
            except NotFoundError:
                pass
            except KvtierError as error:
                outcome.errors.append(error)
                continue
            outcome.written += 1


def _component(wanted: Wanted) -> Component:
    return Component((wanted.body or {})["metadata"]["labels"][COMPONENT_LABEL])


def _failure(wanted: Wanted, error: KvtierError) -> Failure:
    reason = "QuotaExceeded" if "exceeded quota" in str(error) else type(error).__name__.removesuffix("Error")
    return Failure(_component(wanted), reason, f"{wanted.ref} cannot be written: {error}")


def _ending(namespace: str) -> Failure:
    return Failure(
        Component.ENGINE,
        NAMESPACE_TERMINATING,
        f"namespace {namespace} is being deleted: nothing more is made in it",
    )


def _foreign(wanted: Wanted) -> Failure:
    return Failure(
        _component(wanted),
        "NameTaken",
        f"{wanted.ref} is there already and not this resource's: it is left alone; delete or rename it, or "
        "give the KVCacheTier another name",
    )
