"""`kvtier clear`, `warm` and `keep`: what the engines of a KVCacheTier are told."""

import sys
import uuid
from collections.abc import Callable
from typing import Final

import click

from kvtier_common import options as common
from kvtier_common.terminal.say import say, say_json
from kvtier_common.tier import Tier
from kvtier_operator.cli.cluster.order import Order
from kvtier_operator.cli.inputs import options
from kvtier_operator.cli.inputs.prompts import one_prompt, prompts_in, salt_of
from kvtier_operator.cli.main import EXIT_REJECTED
from kvtier_operator.errors import InvalidInputError, Problem

_CLEAR_S: Final = 300.0
_COMPUTE_S: Final = 3600.0
_name: Final = click.argument("name", callback=options.resource_name, shell_complete=options.resource_names)


def _duration_s(_context: click.Context, _option: click.Parameter, value: str) -> int:
    """Callback of an option that is a time: its seconds."""
    import re  # noqa: PLC0415 - help has no values

    from kvtier_common.hints import MOST_RETAIN_S  # noqa: PLC0415 - as above
    from kvtier_operator.api.formats import DURATION_PATTERN, seconds_of  # noqa: PLC0415 - as above

    if re.fullmatch(DURATION_PATTERN, value) and 0 < seconds_of(value) <= MOST_RETAIN_S:
        return seconds_of(value)
    raise click.BadParameter(f"{value!r} is not a duration from 1s to 24h; write it as 90s, 30m or 2h")


_share: Final = click.option(
    "--share", metavar="TENANT", help="The tenant of spec.tenants whose room the prompts take."
)


def _not_empty(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Callback of an option that says which blocks: a script's unset variable does not mean all."""
    if value == "":
        raise click.BadParameter("is empty; leave the option out for all blocks")
    return value


def _of_a_cluster(command: Callable[..., None]) -> Callable[..., None]:
    """The options that all of them have."""
    for option in (common.output, options.cluster, options.namespace):
        command = option(command)
    return command


@click.command(short_help="Have the engines of a KVCacheTier forget what their tiers hold.")
@_name
@click.option(
    "--tier",
    type=click.Choice([tier.label for tier in Tier]),
    help="One tier; all of them, the device's own cache too, without it.",
)
@click.option(
    "--share", metavar="TENANT", callback=_not_empty, help="The blocks of one tenant of spec.tenants."
)
@click.option(
    "--prefix-of",
    "prefix_of",
    type=click.Path(allow_dash=True),
    callback=_not_empty,
    metavar="FILE",
    help="The blocks of one prompt: its text, or JSON with messages, prompt or tokens; - for standard input.",
)
@_of_a_cluster
def clear(  # noqa: PLR0913 - one parameter an option
    *,
    name: str,
    tier: str | None,
    share: str | None,
    prefix_of: str | None,
    namespace: str | None,
    cluster: options.ClusterChoice,
    output: str,
) -> None:
    """Have every engine of the KVCacheTier NAME forget what its tiers hold, or a part of it.

    When it has returned with exit status 0, no engine serves an earlier block. With --share nobody's blocks
    go, too, where they may be the tenant's; --prefix-of leaves what came after the prompt. It
    runs the connector's control program in each engine's pod (rights: get and create pods/exec). Exit status
    1 where an engine could not be told.
    """
    if share is not None and prefix_of is not None:
        raise click.UsageError("--share and --prefix-of are two ways to say which blocks: give one")
    stdin = one_prompt(_read(prefix_of)) if prefix_of is not None else b""
    salt = salt_of(stdin) if prefix_of is not None else ""
    arguments = [
        *(("--tier", tier) if tier else ()),
        *(("--share", share) if share is not None else ()),
        *(("--prefix-of", "-", "--format", "jsonl") if prefix_of is not None else ()),
        *(("--cache-salt", salt) if salt else ()),
        # engines that share a store go on under one name for it
        *("--epoch", uuid.uuid4().hex),
    ]
    order = Order(("clear", *arguments), stdin, _CLEAR_S)
    _tell(name, namespace, cluster, order, output)


@click.command(short_help="Have the engines of a KVCacheTier compute prompts before somebody asks.")
@_name
@click.option(
    "-f",
    "--filename",
    "path",
    type=click.Path(allow_dash=True),
    required=True,
    help="Prompts, one JSON object a line with prompt, messages or tokens; - for standard input.",
)
@_share
@_of_a_cluster
def warm(  # noqa: PLR0913 - one parameter an option
    *,
    name: str,
    path: str,
    share: str | None,
    namespace: str | None,
    cluster: options.ClusterChoice,
    output: str,
) -> None:
    """Have every engine of the KVCacheTier NAME compute prompts, or load what a tier has of them.

    It runs the connector's control program in each engine's pod (rights: get and create pods/exec). Exit
    status 1 where an engine could not be told.
    """
    order = Order(("warm", "-", *_of_share(share)), prompts_in(_read(path), path), _COMPUTE_S)
    _tell(name, namespace, cluster, order, output)


@click.command(short_help="Have the engines of a KVCacheTier keep a prompt for a time.")
@_name
@click.argument(
    "path", metavar="[FILE]", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True)
)
@click.option("--text", metavar="TEXT", help="The prompt itself, in place of FILE.")
@click.option(
    "--for",
    "for_s",
    default="1h",
    show_default=True,
    callback=_duration_s,
    metavar="TIME",
    help="How long it is kept before others: 90s, 30m or 2h, at most 24h.",
)
@_share
@_of_a_cluster
def keep(  # noqa: PLR0913 - one parameter an option
    *,
    name: str,
    path: str | None,
    text: str | None,
    for_s: int,
    share: str | None,
    namespace: str | None,
    cluster: options.ClusterChoice,
    output: str,
) -> None:
    """Have every engine of the KVCacheTier NAME compute a prompt, and keep it before others for a time.

    FILE has the prompt's text, or JSON with messages (and tools), prompt or tokens; - for standard input. The
    beginning of chats is JSON with messages: a chat's prompt begins with the model's template, and no plain
    text is the beginning of it. Tiers keep whole chunks, so a prompt of fewer tokens is not kept.

    All that is kept is bounded by spec.tiers.cpu.retained. It runs the connector's control program in each
    engine's pod (rights: get and create pods/exec). Exit status 1 where an engine could not be told.
    """
    if (path is None) == (text is None):
        raise click.UsageError("give the prompt once: as FILE, or as --text TEXT")
    stdin = one_prompt(_read(path) if path is not None else str(text).encode())
    order = Order(("keep", "-", "--for", str(for_s), *_of_share(share)), stdin, _COMPUTE_S)
    _tell(name, namespace, cluster, order, output)


def _of_share(share: str | None) -> tuple[str, ...]:
    return ("--share", share) if share else ()


def _read(path: str) -> bytes:
    from kvtier_operator.cli.inputs.prompts import MOST_BYTES  # noqa: PLC0415 - as above

    try:
        with click.open_file(path, "rb") as file:
            content: bytes = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(path, Problem("", f"cannot be read: {error.strerror}")) from error
    if len(content) > MOST_BYTES:
        raise click.UsageError(f"{path}: more than {MOST_BYTES >> 20} MiB: give fewer prompts at a time")
    return content


def _tell(
    name: str, namespace: str | None, cluster: options.ClusterChoice, order: Order, output: str
) -> None:
    import asyncio  # noqa: PLC0415 - help needs none of it

    if not asyncio.run(_run(name, namespace, cluster, order, output)):
        sys.exit(EXIT_REJECTED)


async def _run(
    name: str, namespace: str | None, cluster: options.ClusterChoice, order: Order, output: str
) -> bool:
    """Tell all engines and print what they say, each when it has; returns whether all did it."""
    from kvtier_operator.cli.cluster.engines import tell_engines  # noqa: PLC0415 - as above

    answers = []
    async with options.open_cluster(cluster, namespace) as (reader, place):
        async for answer in tell_engines(reader, place, name, order):
            answers.append(answer)
            if output != "json":
                say("\n".join(answer.lines()), err=bool(answer.trouble))
    if output == "json":
        engines = sorted(answers, key=lambda answer: answer.pod)
        say_json({"namespace": place, "name": name, "engines": [answer.fields() for answer in engines]})
    else:
        for note in dict.fromkeys(note for answer in answers for note in answer.notes()):
            say(note)
    return not any(answer.trouble for answer in answers)
