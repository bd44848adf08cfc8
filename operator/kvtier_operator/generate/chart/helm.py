"""What templates of Helm are written with."""

from kvtier_operator.generate.notice import notice


def comment(source: str) -> str:
    """The template's first line."""
    return "{{- /* " + notice(source) + " */ -}}\n"


def block(opening: str, body: str) -> str:
    """Helm's blocks: if, with, range, define."""
    return "{{- " + opening + " }}\n" + body + "{{- end }}\n"


def include(name: str) -> str:
    """Lines of a definition, at the column where they begin."""
    return '{{- include "kvtier.' + name + '" $ | nindent {indent} }}'
