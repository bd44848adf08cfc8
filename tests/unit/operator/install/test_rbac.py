"""The roles hold what the operator writes and what it grants, and nothing else of note."""

from pathlib import Path
from typing import Any

import pytest
from tests.cases.rights import rights

from kvtier_operator.cli.inputs.load import read_documents
from kvtier_operator.install.rbac import EVERYTHING, NAMESPACED, PICKER_LEADER_ELECTION, PICKERS, Rule

GOLDEN = Path(__file__).parents[1] / "golden" / "output"
ALL = EVERYTHING
OBJECTS = [
    document
    for path in sorted(GOLDEN.glob("*/objects.yaml"))
    for document in read_documents(path.read_text(), str(path))
    if isinstance(document, dict)
]


def allowed(group: str, resource: str, verb: str, rules: tuple[Rule, ...] = ALL) -> bool:
    return any(rule.group == group and resource in rule.resources and verb in rule.verbs for rule in rules)


def resource_of(document: dict[str, Any]) -> tuple[str, str]:
    group = document["apiVersion"].rpartition("/")[0]
    kind = document["kind"]
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    return group, plural.lower()


@pytest.mark.parametrize("resource", sorted({resource_of(document) for document in OBJECTS}), ids="/".join)
def test_every_kind_that_is_rendered_can_be_kept(resource: tuple[str, str]) -> None:
    missing = [
        verb
        for verb in ("list", "watch", "create", "patch", "delete")
        if not allowed(*resource, verb, NAMESPACED)
    ]
    assert missing == [], f"install/rbac.py lets the operator not {missing} {resource}"


def test_what_is_granted_is_held_and_nothing_else_is_held_for_that() -> None:
    granted = {
        (group, resource, verb)
        for document in OBJECTS
        if document["kind"] == "Role"
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert [right for right in sorted(granted) if not allowed(*right)] == []
    only_for_that = rights((*PICKERS, *PICKER_LEADER_ELECTION))
    assert [right for right in only_for_that if right not in granted] == []


@pytest.mark.parametrize(
    "right",
    [
        ("", "secrets", "get"),
        ("", "secrets", "list"),
        ("", "secrets", "watch"),
        ("", "secrets", "update"),
        ("", "secrets", "patch"),
        ("", "secrets", "delete"),
        ("", "pods", "create"),
        ("", "pods", "delete"),
        ("", "pods/exec", "create"),
        ("", "nodes", "patch"),
        ("rbac.authorization.k8s.io", "roles", "escalate"),
        ("rbac.authorization.k8s.io", "roles", "bind"),
        ("rbac.authorization.k8s.io", "clusterroles", "bind"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "get"),
    ],
    ids=" ".join,
)
def test_what_is_not_held(right: tuple[str, str, str]) -> None:
    assert not allowed(*right)


def test_nothing_is_everything() -> None:
    assert not [rule for rule in ALL if "*" in (rule.group, *rule.resources, *rule.verbs)]


def test_each_has_a_reason_of_one_line() -> None:
    for rule in ALL:
        assert rule.reason
        assert "\n" not in rule.reason


def test_no_right_twice() -> None:
    each = rights(ALL)
    assert sorted(set(each)) == sorted(each)
