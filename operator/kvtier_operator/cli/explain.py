"""`kvtier explain`: what a field of a KVCacheTier means, from the schema that the CRD has too."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from kvtier_common import options
from kvtier_common.terminal.say import say, say_json
from kvtier_operator.cli.text import fold, terminal_columns

if TYPE_CHECKING:
    from kvtier_operator.api.schema.reference import FieldExplained


def _paths(_context: click.Context, _argument: click.Parameter, incomplete: str) -> list[str]:
    """Paths that begin like the one that is being typed, for a shell."""
    from kvtier_operator.api.schema.complaints import names_at  # noqa: PLC0415 - help needs none of it

    *parents, _ = incomplete.split(".")
    paths = (".".join((*parents, name)) for name in names_at(tuple(parents)))
    return [path for path in paths if path.startswith(incomplete)]


@click.command(short_help="Say what a field of a KVCacheTier means.")
@click.argument("field", default="", shell_complete=_paths)
@options.output
def explain(field: str, output: str) -> None:
    """Say what a FIELD of a KVCacheTier means, such as spec.tiers.cpu: type, default, rules, fields in it.

    The end of its path is enough where no other ends so, such as attach. Without FIELD: the resource itself.
    It asks no cluster: this is the schema of the CRD that comes with this kvtier.
    """
    from kvtier_operator.api.schema.reference import explain_field  # noqa: PLC0415 - help needs none of it

    explanation = explain_field(field)
    if output == "json":
        from dataclasses import asdict  # noqa: PLC0415 - as above

        say_json(asdict(explanation))
    else:
        say(field_screen(explanation, terminal_columns()), end="")


_INDENT: Final = "  "


def field_screen(field: "FieldExplained", columns: int) -> str:
    """A field with those in it, as lines of at most so many columns, with a final newline."""
    return "\n".join(_lines(field, columns)) + "\n"


def _lines(field: "FieldExplained", columns: int) -> Iterator[str]:
    from kvtier_operator.api.resource import API_VERSION, KIND  # noqa: PLC0415 - as above

    yield from fold(f"{field.path or KIND} ({API_VERSION})", columns)
    yield from fold(_kind(field), columns, _INDENT)
    yield from fold(_description(field), columns, _INDENT)
    if field.rules:
        yield ""
        yield "rules"
        for rule in field.rules:
            yield from fold(rule, columns, _INDENT)
    if field.fields:
        yield ""
        yield "fields"
        for part in field.fields:
            name = part.path.rpartition(".")[2]
            yield from fold(f"{name}  {_kind(part)}", columns, _INDENT)
            yield from fold(_description(part), columns, 3 * _INDENT)


def _kind(field: "FieldExplained") -> str:
    """Type, and whether it may be left out."""
    if field.required:
        return f"{field.type}, required"
    if field.default is None:
        return field.type
    default = field.default if isinstance(field.default, str) else json.dumps(field.default)
    return f"{field.type}, default {default}"


def _description(field: "FieldExplained") -> str:
    return f"{field.description} {field.bounds}".strip()
