"""`kvtier explain`: what a field of a KVCacheTier means, from the schema that the CRD has too."""

import click

from kvtier_common import options
from kvtier_common.terminal.say import say, say_json


def _paths(_context: click.Context, _argument: click.Parameter, incomplete: str) -> list[str]:
    """Paths that begin like the one that is being typed, for a shell."""
    from kvtier_operator.api.schema.complaints import names_at  # noqa: PLC0415 - help needs none of it

    *parents, _ = incomplete.split(".")
    found = (".".join((*parents, name)) for name in names_at(tuple(parents)))
    return [each for each in found if each.startswith(incomplete)]


@click.command(short_help="Say what a field of a KVCacheTier means.")
@click.argument("field", default="", shell_complete=_paths)
@options.output
def explain(field: str, output: str) -> None:
    """Say what a FIELD of a KVCacheTier means, such as spec.tiers.cpu: type, default, rules, fields in it.

    Without FIELD: the resource itself. It asks no cluster: this is the schema of the CRD that comes with this
    kvtier.
    """
    from kvtier_operator.api.schema.reference import explain_field  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.cli.lookup.field_screen import field_screen  # noqa: PLC0415 - as above
    from kvtier_operator.cli.text.terminal import terminal_columns  # noqa: PLC0415 - as above

    found = explain_field(field)
    if output == "json":
        from dataclasses import asdict  # noqa: PLC0415 - as above

        say_json(asdict(found))
    else:
        say(field_screen(found, terminal_columns()), end="")
