"""`kvtier completion`: the script by which a shell completes kvtier's commands."""

import click

from kvtier_common.terminal.say import say_whole


@click.command(short_help="Print a shell's completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script by which a SHELL completes kvtier: commands, options, fields, names of resources.

    Its start file loads it: source <(kvtier completion bash), likewise zsh; kvtier completion fish | source.
    kubectl kvtier needs none of it: kubectl's own completion asks kvtier.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - help needs none of it

    from kvtier_operator.cli.main import COMPLETE_VARIABLE, kvtier  # noqa: PLC0415 - main loads this command

    script = get_completion_class(shell)
    assert script is not None  # noqa: S101 - click has these three
    say_whole(script(kvtier, {}, "kvtier", COMPLETE_VARIABLE).source(), end="")
