"""`kvtier explain`: what a field of a KVCacheTier means, from the schema that the CRD has too."""

import json
from collections.abc import Iterator, Sequence
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
@click.option("--recursive", is_flag=True, help="All fields below it, with their types alone.")
@options.output
def explain(field: str, *, recursive: bool, output: str) -> None:
    """Say what a FIELD of a KVCacheTier means, such as spec.tiers.cpu: type, default, rules, fields in it.

    The end of its path is enough where no other ends so, such as attach. Without FIELD: the resource itself.
    It asks no cluster: this is the schema of the CRD that comes with this kvtier.
    """
    from kvtier_operator.api.schema.reference import explain_field  # noqa: PLC0415 - help needs none of it

    explanation = explain_field(field, recursive=recursive)
    if output == "json":
        from dataclasses import asdict  # noqa: PLC0415 - as above

        say_json(asdict(explanation))
    else:
        say(field_screen(explanation, terminal_columns(), recursive=recursive), end="")


_INDENT: Final = "  "


def field_screen(field: "FieldExplained", columns: int, *, recursive: bool = False) -> str:
    """A field with those in it, as lines of at most so many columns, with a final newline.

    Recursive are all fields below it, without what they are for.
    """
    return "\n".join(_lines(field, columns, recursive=recursive)) + "\n"


def _lines(field: "FieldExplained", columns: int, *, recursive: bool) -> Iterator[str]:
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
        if recursive:
            yield from _tree(field.fields, columns, _INDENT)
            return
        for part in field.fields:
            yield from fold(_name_and_kind(part), columns, _INDENT)
            yield from fold(_description(part), columns, 3 * _INDENT)


def _tree(fields: "Sequence[FieldExplained]", columns: int, indent: str) -> Iterator[str]:
    for part in fields:
        yield from fold(_name_and_kind(part), columns, indent)
        yield from _tree(part.fields, columns, indent + _INDENT)


def _name_and_kind(field: "FieldExplained") -> str:
    return f"{field.path.rpartition('.')[2]}  {_kind(field)}"


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
