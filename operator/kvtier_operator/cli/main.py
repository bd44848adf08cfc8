"""Puts the `kvtier` command together from the distribution's entry points."""

import ast
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints, distribution
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Final, cast

import click

from kvtier_common.errors import KvtierError
from kvtier_common.terminal.say import complain
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.extras import missing_package

EXIT_REJECTED: Final = 1
EXIT_BAD_INPUT: Final = 2
EXIT_FAILED: Final = 3
COMPLETE_VARIABLE: Final = "_KVTIER_COMPLETE"
"""By which a shell asks for completions; click names it after the program, whatever that is called."""

_EXTRAS: Final = {
    "run": "engine-cpu",
    "demo": "engine-cpu",
    "picker": "scorer",
    "simulate": "scorer",
    "connector": "connector",
    "plan": "operator",
    "doctor": "operator",
    "status": "operator",
    "top": "operator",
    "clear": "operator",
    "warm": "operator",
    "keep": "operator",
}
"""What a command needs as a whole: whoever lacks one of its packages lacks others."""


class EntryPointGroup(click.Group):
    """A command group whose sub-commands are entry points of this distribution, imported when they are typed.

    Only kvtier's own metadata is read: going through every installed distribution costs more than planning.
    """

    def __init__(self, *, entry_point_group: str, **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type]
        self._entry_point_group = entry_point_group

    def _entry_points(self) -> EntryPoints:
        return distribution("kvtier").entry_points.select(group=self._entry_point_group)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the sub-commands."""
        del ctx
        return [entry_point.name for entry_point in self._entry_points()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The sub-command of that name, or None."""
        del ctx
        for entry_point in self._entry_points():
            if entry_point.name == cmd_name:
                return cast("click.Command", entry_point.load())
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest sub-command where one is misspelt: click itself looks among imported ones."""
        names = self.list_commands(ctx)
        if args[0] not in names and not ctx.resilient_parsing:
            from difflib import get_close_matches  # noqa: PLC0415 - only where something is wrong

            if near := get_close_matches(args[0], names, n=1):
                ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the sub-commands without importing them: that may take packages that are not installed."""
        del ctx
        commands = sorted(self._entry_points(), key=lambda command: command.name)
        with formatter.section("Commands"):
            formatter.write_dl([(command.name, summary(command)) for command in commands])


# of all sub-commands too, which inherit them; lines of help that are longer are hard to read
_HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 120}


@click.group(cls=EntryPointGroup, entry_point_group="kvtier.commands", context_settings=_HELP)
@click.version_option(package_name="kvtier")
def kvtier() -> None:
    """Prefix cache beyond the GPU for vLLM, from one KVCacheTier."""


def main(prog_name: str | None = None) -> None:
    """Run the command line: exit 0 fine, 1 rejected by a check, 2 bad input, 3 a run or a cluster failed.

    SIGTERM ends a command as Ctrl-C does: what it has taken, from processes to huge pages, it gives back.
    """
    signal.signal(signal.SIGTERM, _end)
    try:
        code = kvtier(prog_name=prog_name, complete_var=COMPLETE_VARIABLE, standalone_mode=False)
    except click.ClickException as error:
        shown = StringIO()
        error.show(shown)
        complain(shown.getvalue())
        sys.exit(error.exit_code)
    except click.Abort:
        complain("Aborted!")
        sys.exit(EXIT_REJECTED)
    except InvalidInputError as error:
        complain(str(error))
        sys.exit(EXIT_BAD_INPUT)
    except KvtierError as error:
        complain(f"kvtier: {error}")
        sys.exit(EXIT_FAILED)
    except OSError as error:
        if error.filename is None:
            raise
        complain(f"kvtier: {error.filename}: {error.strerror}")
        sys.exit(EXIT_FAILED)
    except ModuleNotFoundError as error:
        typed = sys.argv[2:0:-1]
        wanted = next((_EXTRAS[word] for word in typed if word in _EXTRAS), "")
        if (line := missing_package(error, wanted)) is None:
            raise
        complain(f"kvtier: {line}")
        sys.exit(EXIT_FAILED)
    sys.exit(code if isinstance(code, int) else 0)


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    signal.signal(number, signal.SIG_DFL)  # who cannot wait for that says it again
    sys.exit(128 + number)


def summary(command: EntryPoint) -> str:
    """The `short_help` of a command, as it is written in its file; empty where none is.

    Importing the file may take packages that are not installed; only the packages around it are imported.
    """
    return next(_short_helps(command), "")


def _short_helps(command: EntryPoint) -> Iterator[str]:
    module = find_spec(command.module)
    if module is None or module.origin is None:
        return
    for function in ast.parse(Path(module.origin).read_text(encoding="utf-8")).body:
        if not isinstance(function, ast.FunctionDef) or function.name != command.attr:
            continue
        for decorator in function.decorator_list:
            for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
                if keyword.arg == "short_help" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)
