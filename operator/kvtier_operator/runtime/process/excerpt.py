"""The lines of an engine's log that say why it died."""

import re
from typing import Final

# vLLM's prefixes: `(EngineCore pid=12) ERROR 11-20 10:11:12 [core.py:88] `.
_PROCESS: Final = re.compile(r"^(\([\w ]+? pid=\d+\)\s?)+")
_LOG_LEVEL: Final = re.compile(r"^(DEBUG|INFO|WARNING|ERROR|CRITICAL) [\d-]+ [\d:.]+ \[[^\]]+\] ?")
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;]*m")
_EXCEPTION: Final = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Timeout)\b(?:: .+|:?$)"
)
_USAGE: Final = re.compile(r"^\S+: error: ")
_KILLED: Final = re.compile(
    r"out of memory|Killed|Bus error|Segmentation fault|No space left on device", re.IGNORECASE
)
# Said by the processes around the one that failed, never the cause.
_CONSEQUENCE: Final = re.compile(
    r"Engine core initialization failed|WorkerProc initialization failed|See root cause above|"
    r"please check the stack trace above|"
    r"^(?:\w+\.)*(?:EngineDeadError|CancelledError|KeyboardInterrupt|SystemExit|EOFError|BrokenPipeError)"
)
_FOLLOWING_LINES: Final = 4


def relevant_lines(log: str, *, limit: int = 8) -> list[str]:
    """Pick from `log` the root error, without traceback; the last lines where no error can be found.

    Args:
        log: The whole log.
        limit: At most so many lines.
    """
    lines = [_bare(line) for line in log.splitlines()]
    lines = [line for line in lines if line.strip()]
    causes = [number for number, line in enumerate(lines) if _is_cause(line)]
    if not causes:
        errors = [_bare(line) for line in log.splitlines() if re.search(r"\b(ERROR|CRITICAL)\b", line)]
        found = [line for line in errors if line.strip() and not line.startswith(" ")] or lines
        return _unique(found)[-limit:]
    picked: list[str] = []
    for number in causes:
        picked.append(lines[number])
        picked += _continuation(lines, number)
    return _unique(picked)[:limit]


def _bare(line: str) -> str:
    line = _PROCESS.sub("", _ESCAPES.sub("", line))
    return _LOG_LEVEL.sub("", line).rstrip()


def _is_cause(line: str) -> bool:
    if _CONSEQUENCE.search(line):
        return False
    return bool(
        _EXCEPTION.match(line) or _USAGE.match(line) or (_KILLED.search(line) and not line.startswith(" "))
    )


def _continuation(lines: list[str], number: int) -> list[str]:
    """Indented lines after an exception belong to its message, as pydantic writes them."""
    following: list[str] = []
    for line in lines[number + 1 : number + 1 + _FOLLOWING_LINES]:
        if not line.startswith("  ") or line.lstrip().startswith(("File ", "For further information")):
            break
        following.append(line)
    return following


def _unique(lines: list[str]) -> list[str]:
    return list(dict.fromkeys(lines))
