"""Rules of a role as single rights."""

from collections.abc import Iterable

from kvtier_operator.install.rbac import Rule

Right = tuple[str, str, str]
"""Group, resource (or resource/subresource), verb."""


def rights(rules: Iterable[Rule]) -> list[Right]:
    """Every single right of some rules."""
    return [
        (rule.group, resource, verb) for rule in rules for resource in rule.resources for verb in rule.verbs
    ]
