"""What each command is for, in a line: lists of them are shown without importing what any of them needs."""

import ast
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path


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
