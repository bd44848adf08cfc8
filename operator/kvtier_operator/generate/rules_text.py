"""Rules of a role as YAML, each below its reason."""

from collections.abc import Iterable

from kvtier_operator.install.rbac import Rule


def rules_text(rules: Iterable[Rule]) -> str:
    """The items of a role's `rules`."""
    return "".join(map(_rule, rules))


def _rule(rule: Rule) -> str:
    group = rule.group or '""'
    return (
        f"# {rule.reason}\n"
        f"- apiGroups: [{group}]\n"
        f"  resources: [{', '.join(rule.resources)}]\n"
        f"  verbs: [{', '.join(rule.verbs)}]\n"
    )
