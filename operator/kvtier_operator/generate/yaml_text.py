"""Objects as YAML for a reader: keys in the order they were given, and places for text that YAML cannot hold.

Such text is a comment, or an expression of Helm's.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from kvtier_operator.install.rbac import Rule

_WIDTH: Final = 110
_TOKEN: Final = "KVTIERTEXT"  # noqa: S105 - not a password
_LINE: Final = re.compile(
    rf"^(?P<indent> *)(?P<dash>(?:- )?)(?P<key>[^:]+): {_TOKEN}(?P<index>\d+)$", re.MULTILINE
)


def notice(source: str) -> str:
    """The line without its comment signs."""
    return f"Generated from {source}, do not edit: run `make generate`."


@dataclass(frozen=True, slots=True)
class Inline:
    """Text right behind the key."""

    text: str


@dataclass(frozen=True, slots=True)
class Below:
    """Lines under the key, moved in below it."""

    text: str  # the lines; `{indent}` stands for the column they begin at


@dataclass(frozen=True, slots=True)
class With:
    """The key with a value of the chart's, where that is set."""

    value: str  # such as `$.Values.tolerations`


Text = Inline | Below | With


class _IndentedDumper(yaml.SafeDumper):
    """Indents lists under their key, as Kubernetes' own documents are; no aliases, lines as a block."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: ANN401 - PyYAML's
        del indentless
        return super().increase_indent(flow=flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401 - as above
        del data
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_IndentedDumper.add_representer(str, _string)


def yaml_text(document: Mapping[str, Any], texts: Mapping[str, Text] | None = None) -> str:
    """One document; `texts` stand in place of values, or beside them.

    These are by path, parts separated by blanks, such as `spec template spec containers 0 image`.
    """
    written = copy.deepcopy(dict(document))
    placed = [*(texts or {}).items()]
    for index, (path, _) in enumerate(placed):
        *parents, last = path.split()
        node: Any = written
        for part in parents:
            node = node[int(part) if isinstance(node, list) else part]
        node[last] = f"{_TOKEN}{index}"
    dumped = yaml.dump(written, Dumper=_IndentedDumper, sort_keys=False, width=_WIDTH)
    return _LINE.sub(lambda line: _with_text(line, placed[int(line["index"])][1]), dumped)


def _with_text(line: re.Match[str], text: Text) -> str:
    head = f"{line['indent']}{line['dash']}{line['key']}:"
    column = len(line["indent"]) + len(line["dash"])
    indent = " " * column
    match text:
        case Inline():
            return f"{head} {text.text}"
        case Below():
            lines = text.text.replace("{indent}", str(column + 2)).splitlines()
            return "\n".join([head, *(f"{indent}  {line}" for line in lines)])
        case With():
            value = f"{indent}  {{{{- toYaml . | nindent {column + 2} }}}}"
            return f"{indent}{{{{- with {text.value} }}}}\n{head}\n{value}\n{indent}{{{{- end }}}}"


def rules_text(rules: Iterable[Rule]) -> str:
    """The items of a role's `rules`."""
    return "".join(map(_rule_text, rules))


def _rule_text(rule: Rule) -> str:
    group = rule.group or '""'
    return (
        f"# {rule.reason}\n"
        f"- apiGroups: [{group}]\n"
        f"  resources: [{', '.join(rule.resources)}]\n"
        f"  verbs: [{', '.join(rule.verbs)}]\n"
    )
