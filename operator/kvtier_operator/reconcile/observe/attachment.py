"""What decides in a namespace whether pods of other owners may get a tier; answers are kept for a while."""

import asyncio
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

from kvtier_common.kubernetes.answers import (
    ForbiddenError,
    NotFoundError,
    as_object,
    items_of,
    parse_document,
)
from kvtier_common.kubernetes.client import Api
from kvtier_operator.planning.base.names import ATTACH_OPT_IN, POLICY_VERSIONS
from kvtier_operator.planning.cluster.growth import NamespaceRules
from kvtier_operator.reconcile.api_server import LIMIT_RANGE, NAMESPACE, REFERRED, RESOURCE_QUOTA, Kind

KEPT_S: Final = 30.0
"""How long an answer holds."""
_OURS: Final = {"labelSelector": "app.kubernetes.io/part-of=kvtier", "limit": "1"}
_MOST_BYTES: Final = 4 << 20


class Injection(Enum):
    """What the cluster has of the policy that changes pods."""

    INSTALLED = auto()
    NOT_INSTALLED = auto()
    """The cluster serves such policies, and has none of kvtier's."""
    NOT_SERVED = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class AttachmentTerms:
    """What was found."""

    injection: Injection = Injection.UNKNOWN
    opted_in: bool = True  # whether the namespace has the label by which its pods may be changed
    rules: NamespaceRules = field(default_factory=NamespaceRules)


@dataclass(slots=True)
class AttachmentLookup:
    """Asks the API server; what it may not be asked counts as allowed."""

    api: Api
    _known: dict[str, tuple[float, AttachmentTerms]] = field(default_factory=dict)

    async def of(self, namespace: str) -> AttachmentTerms:
        """The terms of a namespace.

        Raises:
            KvtierError: The server did not answer.
        """
        now_s = asyncio.get_running_loop().time()
        at_s, terms = self._known.get(namespace, (0.0, None))
        if terms is None or now_s - at_s > KEPT_S:
            terms = AttachmentTerms(
                injection=await self._injection(),
                opted_in=await self._opted_in(namespace),
                rules=NamespaceRules(
                    await self._list(LIMIT_RANGE, namespace), await self._list(RESOURCE_QUOTA, namespace)
                ),
            )
            self._known[namespace] = now_s, terms
        return terms

    async def _injection(self) -> Injection:
        """Of the versions of the policy's API the first that is served."""
        for api_version in POLICY_VERSIONS:
            kind = Kind(api_version, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", REFERRED)
            try:
                answer = await self.api.get(kind.path(), _OURS, most_bytes=_MOST_BYTES)
            except NotFoundError:
                continue
            except ForbiddenError:
                return Injection.UNKNOWN
            found = items_of(parse_document(answer))
            return Injection.INSTALLED if found else Injection.NOT_INSTALLED
        return Injection.NOT_SERVED

    async def _opted_in(self, namespace: str) -> bool:
        try:
            answer = await self.api.get(NAMESPACE.path(name=namespace), most_bytes=_MOST_BYTES)
        except ForbiddenError:
            return True
        labels = as_object(parse_document(answer).get("metadata")).get("labels") or {}
        return ATTACH_OPT_IN.items() <= labels.items()

    async def _list(self, kind: Kind, namespace: str) -> tuple[dict[str, Any], ...]:
        try:
            answer = await self.api.get(kind.path(namespace), most_bytes=_MOST_BYTES)
        except ForbiddenError:
            return ()
        return tuple(as_object(item) for item in items_of(parse_document(answer)))
