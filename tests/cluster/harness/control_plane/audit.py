"""What service accounts ask of an API server, as it records it itself."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

AUDIT_LOG: Final = "audit.log"
_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}],
}
_CREATED: Final = 201
_UNLAWFUL: Final = ("cannot create resource", "not currently held")
"""Said after the authorizer, of a right that a request takes beside its verb's; quotas say no, too."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request about a kind of object.

    Attributes:
        right: Group, resource (or resource/subresource) and verb that it takes.
        namespace: Empty for what is asked of all.
        why: Why the authorizer let it pass; empty where it did not.
        refused: Whether the right to it was missing.
        created: Whether it made an object: by a patch that takes the right to create, too.
    """

    right: tuple[str, str, str]
    namespace: str
    why: str
    refused: bool
    created: bool

    def __str__(self) -> str:
        return f"{' '.join(self.right)} in {self.namespace or 'all namespaces'}"


def write_policy(folder: Path) -> Path:
    """Writes the policy that has an API server record its service accounts and nobody else."""
    file = folder / "audit-policy.yaml"
    file.write_text(json.dumps(_POLICY))  # JSON is YAML
    return file


def requests_of(log: Path, namespace: str, account: str) -> Iterator[Asked]:
    """What a service account of a namespace asked so far."""
    user = f"system:serviceaccount:{namespace}:{account}"
    whole, _, _ = log.read_text(encoding="utf-8").rpartition("\n")  # it may be written to
    for line in whole.splitlines():
        event = json.loads(line)
        if event["user"]["username"] == user and "objectRef" in event:
            yield _request(event)


def _request(event: dict[str, Any]) -> Asked:
    about = event["objectRef"]
    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    notes = event.get("annotations", {})
    status = event.get("responseStatus", {})
    said = status.get("message", "")
    return Asked(
        right=(about.get("apiGroup", ""), resource, event["verb"]),
        namespace=about.get("namespace", ""),
        why=notes.get("authorization.k8s.io/reason", ""),
        refused=notes.get("authorization.k8s.io/decision") == "forbid"
        or any(each in said for each in _UNLAWFUL),
        created=status.get("code") == _CREATED,
    )
