"""Tells the engines of this container what to do: `python3 -m kvtier_connector.control clear --tier disk`.

Every engine that listens in the folder is asked, and each answer is a line of JSON. It needs neither vLLM nor
anything that an engine's image may lack.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from kvtier_common.errors import KvtierError, MalformedError
from kvtier_common.hints import MOST_RETAIN_S, MOST_TENANT_CHARACTERS, Hints, Priority
from kvtier_common.one_line import one_line
from kvtier_common.tier import Tier
from kvtier_connector.core.control.client import ControlError, ask, sockets_in
from kvtier_connector.payload import CONTROL_PATH, CONTROL_VARIABLE
from kvtier_connector.serve.local_api import (
    DEFAULT_PORT,
    Computed,
    Prompt,
    compute_prompts,
    read_prompts,
    tokens_of,
)

DEFAULT_TIMEOUT_S: Final = 300.0
_TOP_S: Final = 10.0
_MOST_CHARACTERS: Final = 64 << 20  # of standard input
_MOST_SHOWN: Final = 1000  # characters of what went wrong

_Answer = dict[str, Any]


class CommandError(KvtierError):
    """What was asked for cannot be done; one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status: 0, or 1 where something failed, which is on standard error."""
    arguments = _parser().parse_args(argv)
    try:
        answers = arguments.run(arguments)
    except (KvtierError, MalformedError, OSError) as error:
        return _fail(str(error))
    for answer in answers:
        sys.stdout.write(f"{json.dumps(answer)}\n")
    failed = [
        f"{answer.get('engine', 'engine')}: {answer['error']}" for answer in answers if "error" in answer
    ]
    return _fail("; ".join(failed)) if failed else 0


def _fail(why: str) -> int:
    sys.stderr.write(f"kvtier: {one_line(why, _MOST_SHOWN)}\n")
    return 1


# ---- to the sockets ----


def _clear(arguments: argparse.Namespace) -> list[_Answer]:
    order: _Answer = {
        "verb": "clear",
        "tier": arguments.tier,
        "share": arguments.share,
        "epoch": arguments.epoch or uuid4().hex,
    }
    if arguments.prefix_of is not None:
        prompts = _prompts(arguments, arguments.prefix_of)
        order |= {"tokens": _token_ids(arguments, prompts), "cache_salt": arguments.cache_salt}
    return _ask_all(arguments, order)


def _top(arguments: argparse.Namespace) -> list[_Answer]:
    return _ask_all(arguments, {"verb": "top"})


def _prefetch(arguments: argparse.Namespace) -> list[_Answer]:
    tokens = _token_ids(arguments, _prompts(arguments, arguments.prompts))
    orders = [{"verb": "prefetch", "tokens": ids, "cache_salt": arguments.cache_salt} for ids in tokens]
    return [answer for order in orders for answer in _ask_all(arguments, order)]


def _ask_all(arguments: argparse.Namespace, order: _Answer) -> list[_Answer]:
    """Ask every engine; one that does not answer is told of, and the others are asked all the same."""
    sockets = sockets_in(Path(arguments.path))
    if not sockets:
        raise CommandError(
            f"no engine listens in {arguments.path}; see that it has started, and that its setting "
            "control_path is this folder"
        )
    answers = list[_Answer]()
    for path in sockets:
        try:
            answer = ask(path, order, timeout_s=arguments.timeout)
        except ControlError as error:
            answer = {"error": str(error)}
        answers.append({"engine": path.stem, **answer})
    return answers


# ---- to the engine's own API ----


def _warm(arguments: argparse.Namespace) -> list[_Answer]:
    return _compute(
        arguments, Hints(arguments.retain, Priority[arguments.priority.upper()], arguments.share or "")
    )


def _keep(arguments: argparse.Namespace) -> list[_Answer]:
    return _compute(arguments, Hints(arguments.keep_for, Priority.HIGH, arguments.share or ""))


def _compute(arguments: argparse.Namespace, hints: Hints) -> list[_Answer]:
    computed = list(
        compute_prompts(
            _prompts(arguments, arguments.prompts),
            port=arguments.port,
            model=arguments.model,
            hints=hints,
            until_s=time.monotonic() + arguments.timeout,
        )
    )
    errors = [prompt.error for prompt in computed if prompt.error]
    short = _too_short(arguments, computed)
    said: _Answer = {
        "engine": f"port {arguments.port}",
        "prompts": len(computed),
        "computed": len(computed) - len(errors),
        "tokens": sum(prompt.tokens for prompt in computed),
        "cached_tokens": sum(prompt.cached_tokens for prompt in computed),
        **({"note": short} if short else {}),
    }
    return [said | ({"error": f"{len(errors)} of them failed, the first: {errors[0]}"} if errors else {})]


def _too_short(arguments: argparse.Namespace, computed: Sequence[Computed]) -> str:
    """A line on prompts that no tier holds, since tiers hold whole chunks; empty where none is known."""
    chunk_tokens = 0
    for path in sockets_in(Path(arguments.path)):
        with suppress(ControlError):
            told = ask(path, {"verb": "top"}, timeout_s=_TOP_S).get("chunk_tokens")
            chunk_tokens = max(chunk_tokens, told if isinstance(told, int) else 0)
    short = sum(0 < prompt.tokens < chunk_tokens for prompt in computed)
    if not short:
        return ""
    whose = f"{short} of {len(computed)} prompts have" if len(computed) > 1 else "the prompt has"
    return f"{whose} fewer than the {chunk_tokens} tokens of a chunk, so no tier keeps anything of it"


def _token_ids(arguments: argparse.Namespace, prompts: Sequence[Prompt]) -> list[list[int]]:
    until_s = time.monotonic() + arguments.timeout
    model = arguments.model
    return [list(tokens_of(prompt, port=arguments.port, model=model, until_s=until_s)) for prompt in prompts]


def _prompts(arguments: argparse.Namespace, source: str) -> list[Prompt]:
    """Read prompts from a file, or from standard input for `-`. Raises MalformedError, OSError."""
    if source == "-":
        text = sys.stdin.read(_MOST_CHARACTERS + 1)
    else:
        with Path(source).open(encoding="utf-8") as file:
            text = file.read(_MOST_CHARACTERS + 1)
    if len(text) > _MOST_CHARACTERS:
        raise MalformedError(f"{source}: more than {_MOST_CHARACTERS:,} characters")
    if arguments.format == "text":
        prompts = [Prompt(text=text)] if text else []
    else:
        try:
            prompts = list(read_prompts(text.splitlines()))
        except MalformedError as error:
            raise MalformedError(f"{source}: {error}") from error
    if not prompts:
        raise MalformedError(f"{source}: there is no prompt in it")
    return prompts


# ---- the command line ----


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m kvtier_connector.control", description=__doc__.partition("\n")[0] if __doc__ else ""
    )
    parser.add_argument(
        "--path",
        default=os.environ.get(CONTROL_VARIABLE) or CONTROL_PATH,
        help=f"folder of the engines' sockets (default: {CONTROL_VARIABLE}, or {CONTROL_PATH})",
    )
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="of the engine's own API on 127.0.0.1")
    parser.add_argument("--model", default="", help="name that the engine serves; by default it is asked")
    parser.add_argument(
        "--timeout", type=_seconds, default=DEFAULT_TIMEOUT_S, help="seconds that all of it may take"
    )
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")

    clear = _verb(verbs, "clear", _clear, "have earlier blocks not be served any more")
    clear.add_argument("--tier", choices=[tier.label for tier in Tier], help="of this tier only")
    what = clear.add_mutually_exclusive_group()
    what.add_argument(
        "--share",
        type=_share,
        help="of this tenant, with what may be theirs; of device and shared store everything",
    )
    what.add_argument(
        "--prefix-of",
        metavar="FILE",
        type=_file,
        help="those of a prompt, not of what came after it; - for standard input",
    )
    clear.add_argument("--epoch", default="", help="name of what comes after, one for all who share a store")
    _add_form(clear, "text")

    _verb(verbs, "top", _top, "say what the tiers hold")

    prefetch = _verb(verbs, "prefetch", _prefetch, "bring a prompt's blocks to memory from disk or store")
    _add_prompts(prefetch)
    _add_form(prefetch, "text")

    warm = _verb(verbs, "warm", _warm, "compute prompts, so that their blocks are there")
    _add_prompts(warm)
    warm.add_argument(
        "--retain", type=_retain, default=0.0, help="seconds in which they are likely to be used"
    )
    warm.add_argument("--priority", choices=[one.name.lower() for one in Priority], default="normal")
    warm.add_argument("--share", type=_share, help="the tenant whose they are")
    warm.set_defaults(format="jsonl")

    keep = _verb(verbs, "keep", _keep, "compute prompts, and have their blocks leave last for a while")
    _add_prompts(keep)
    keep.add_argument("--for", dest="keep_for", metavar="SECONDS", type=_retain, required=True)
    keep.add_argument("--share", type=_share, help="the tenant whose they are")
    keep.set_defaults(format="jsonl")
    return parser


def _verb(
    verbs: Any,  # noqa: ANN401 - argparse has no public type for it
    name: str,
    run: Callable[[argparse.Namespace], list[_Answer]],
    text: str,
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    parser.set_defaults(run=run)
    return parser


def _add_prompts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompts", metavar="FILE", nargs="?", default="-", help="- for standard input")


def _add_form(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--format",
        choices=["text", "jsonl"],
        default=default,
        help='of the file: one prompt\'s text, or a line each of {"prompt"}, {"messages"} or {"tokens"}',
    )
    parser.add_argument("--cache-salt", default="", help="that requests with the prompt have")


def _seconds(text: str) -> float:
    if not 0 < (seconds := float(text)) < float("inf"):
        raise argparse.ArgumentTypeError("must be more than 0")
    return seconds


def _retain(text: str) -> float:
    if not 0 <= (seconds := float(text)) <= MOST_RETAIN_S:
        raise argparse.ArgumentTypeError(f"must be 0 to {MOST_RETAIN_S} seconds")
    return seconds


def _file(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("must be a file, or - for standard input")
    return text


def _share(text: str) -> str:
    if not 0 < len(text) <= MOST_TENANT_CHARACTERS:
        raise argparse.ArgumentTypeError(
            f"must be a tenant's name of 1 to {MOST_TENANT_CHARACTERS} characters"
        )
    return text


if __name__ == "__main__":
    sys.exit(main())
