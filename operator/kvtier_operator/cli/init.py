"""`kvtier init`: a first KVCacheTier, with what its fields mean."""

from pathlib import Path
from typing import Final

import click

from kvtier_common.terminal.say import say_whole
from kvtier_operator.cli.inputs.what_if import OPTIONS, WhatIf, what_if
from kvtier_operator.errors import InvalidInputError, Problem

_CPU: Final = "100Gi"
_EXAMPLE: Final[dict[str, str | int]] = {
    "model": "Qwen/Qwen3-32B",
    "gpu": "h100",
    "tensor_parallel_size": 2,
    "cpu": _CPU,
}
"""Where no model is named."""


@click.command(short_help="Print a first KVCacheTier, with what its fields mean.")
@what_if
@click.option(
    "--write-to",
    "output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it to this file, which must not be there yet.",
)
def init(asked: WhatIf, output: Path | None) -> None:
    """Print a first KVCacheTier as YAML, with what its fields mean and others that many resources have.

    Without --model it is an example. Exit status: 2 bad input, or a file that is there already or cannot be
    written.
    """
    from kvtier_operator.api.first_resource import commented_yaml  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.api.parse import parse_resource  # noqa: PLC0415 - as above

    document = asked.document(**(_EXAMPLE if asked.model is None else {"cpu": _CPU}))
    parse_resource(document, OPTIONS)
    text = commented_yaml(document)
    if output is None:
        say_whole(text, end="")
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        problem = Problem("", "is there already, and init replaces nothing: name another file")
        raise InvalidInputError(str(output), problem) from error
    except OSError as error:
        raise InvalidInputError(str(output), Problem("", f"cannot be written: {error.strerror}")) from error
