"""docs/operations/rbac.md: what the operator may do and why, in a table of the rules themselves."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kvtier_operator.generate.notice import notice
from kvtier_operator.install.admission import PRIVILEGES
from kvtier_operator.install.rbac import (
    CLUSTER,
    DELETION_COST,
    NAMESPACED,
    PICKER_LEADER_ELECTION,
    PICKERS,
    Rule,
)

_PAGE: Final = Path(__file__).with_name("rights.md")


def rights_page() -> str:
    """The whole page."""
    return f"<!-- {notice('operator/kvtier_operator/install/rbac.py')} -->\n" + _PAGE.read_text(
        encoding="utf-8"
    ).format(
        namespaced=_table(NAMESPACED),
        pickers=_table((*PICKERS, *PICKER_LEADER_ELECTION)),
        cost=_table(DELETION_COST),
        cluster=_table(CLUSTER),
        privileges=_privileges(),
    )


def _table(rules: Iterable[Rule]) -> str:
    rows = [
        (f"`{rule.group or 'core'}`", ", ".join(rule.resources), ", ".join(rule.verbs), rule.reason)
        for rule in rules
    ]
    return _lines([("Group", "Resources", "Verbs", "Why"), ("---",) * 4, *rows])


def _privileges() -> str:
    rows = [
        (
            f"`{each.id}`",
            f"`{each.field}`",
            each.what.rstrip(","),
            f"`{each.creatable}`" if each.creatable else "nothing",
            f"`kvcachetiers/{each.name}`",
        )
        for each in PRIVILEGES
    ]
    heads = ("Row", "Field", "What it gets", "Enough to `create`", "Or to `use`")
    return _lines([heads, ("---",) * len(heads), *rows])


def _lines(lines: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
