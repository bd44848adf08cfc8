"""`kubectl kvtier`: kubectl runs `kubectl-kvtier` for it, and `kubectl_complete-kvtier` when TAB is typed.

Source: k8s.io/kubectl v0.34, pkg/cmd/plugin/plugin_completion.go.
"""

import sys
from enum import IntEnum
from typing import Final

from click.shell_completion import ShellComplete

from kvtier_common.terminal.say import say, say_row
from kvtier_operator.cli.main import COMPLETE_VARIABLE, kvtier
from kvtier_operator.cli.main import main as kvtier_main

NAME: Final = "kubectl kvtier"


class _Directive(IntEnum):
    """What the shell is to do with completions (cobra, ShellCompDirective)."""

    FILES_IF_NONE = 0
    NO_FILES = 4


def main() -> None:
    """The `kvtier` command by another name."""
    kvtier_main(NAME)


def complete() -> None:
    """Prints completions of the last word given, one a line, and then what the shell is to do with them."""
    *words, incomplete = sys.argv[1:] or [""]
    completions = ShellComplete(kvtier, {}, NAME, COMPLETE_VARIABLE).get_completions(words, incomplete)
    plain = [completion for completion in completions if completion.type == "plain"]
    for completion in plain:
        say_row(*filter(None, (completion.value, completion.help)))
    say(f":{_Directive.NO_FILES if len(plain) == len(completions) else _Directive.FILES_IF_NONE}")
