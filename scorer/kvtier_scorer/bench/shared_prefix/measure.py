"""Asks what `kvtier bench shared-prefix` is told to, and shows it beside earlier runs."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kvtier_common.benchmarks import Workload
from kvtier_common.formats.json_text import json_file
from kvtier_common.terminal.console import PlainConsole
from kvtier_common.terminal.say import json_document, say_whole
from kvtier_scorer.bench.shared_prefix.client import Answer, Server
from kvtier_scorer.bench.shared_prefix.engines import read_engines
from kvtier_scorer.bench.shared_prefix.errors import ServerError
from kvtier_scorer.bench.shared_prefix.figures import Figures
from kvtier_scorer.bench.shared_prefix.load import LoadResult, constant_concurrency
from kvtier_scorer.bench.shared_prefix.plot import write_plot
from kvtier_scorer.bench.shared_prefix.table import table
from kvtier_scorer.bench.shared_prefix.workload import WORKLOADS, Question, questions, text

_SAMPLE_WORDS: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPrefixOptions:
    """The options; None where one was left out.

    Attributes are named as the options are.
    """

    url: str
    workload: str
    num_groups: int | None
    prompts_per_group: int | None
    system_prompt_len: int | None
    question_len: int | None
    output_len: int | None
    concurrency: int | None
    engines: tuple[str, ...]
    model: str | None
    name: str
    beside: tuple[Path, ...]
    seed: int
    timeout_s: float
    api_key: str | None
    output: str
    write: Path | None
    plot: Path | None


def measure(asked: SharedPrefixOptions) -> None:
    """Ask, print, and write what was asked for.

    Raises:
        ServerError: The server does not answer, or refused a request.
        click.BadParameter: An earlier run's file is none.
    """
    shape = _shape(asked)
    earlier = [_read(path) for path in asked.beside]
    figures = asyncio.run(_measure(asked, shape))
    runs = [*earlier, figures]
    document = json_document({"shared_prefix": figures.to_json()})
    if asked.write is not None:
        asked.write.parent.mkdir(parents=True, exist_ok=True)
        asked.write.write_text(document + "\n", encoding="utf-8")
    if asked.plot is not None:
        write_plot(runs, asked.plot)
    if asked.output == "json":
        say_whole(document)
    else:
        PlainConsole().print(table(runs))
    if figures.failed:
        raise ServerError(
            f"{figures.failed} of {shape.requests} requests failed; the first: {figures.failure}"
        )


def _shape(asked: SharedPrefixOptions) -> Workload:
    changed = {
        "groups": asked.num_groups,
        "prompts_per_group": asked.prompts_per_group,
        "system_tokens": asked.system_prompt_len,
        "question_tokens": asked.question_len,
        "output_tokens": asked.output_len,
        "concurrency": asked.concurrency,
    }
    given = {key: value for key, value in changed.items() if value is not None}
    return replace(WORKLOADS[asked.workload], **given)


async def _measure(asked: SharedPrefixOptions, shape: Workload) -> Figures:
    connecting = Server(
        asked.url, api_key=asked.api_key, timeout_s=asked.timeout_s, connections=shape.concurrency
    )
    async with connecting as server:
        model = asked.model or await server.first_model()
        sample = text(random.Random(asked.seed), _SAMPLE_WORDS)  # noqa: S311 - not for secrets
        prompts = questions(shape, await server.words_per_token(model, sample), asked.seed)
        before = await read_engines(asked.engines)

        async def ask(question: Question) -> Answer:
            return await server.ask(model, question, shape.output_tokens)

        result = await _shown(ask, prompts, shape.concurrency)
        return Figures.of(asked.name, shape, result, before, await read_engines(asked.engines))


async def _shown(
    ask: Callable[[Question], Awaitable[Answer]], prompts: list[Question], concurrency: int
) -> LoadResult:
    columns = (TextColumn("requests"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=PlainConsole(stderr=True), transient=True) as progress:
        task = progress.add_task("requests", total=len(prompts))
        return await constant_concurrency(
            ask,
            prompts,
            concurrency,
            lambda _: progress.advance(task),
        )


def _read(path: Path) -> Figures:
    try:
        return Figures.from_json(json_file(path)["shared_prefix"])
    except (ValueError, KeyError, TypeError) as error:
        raise click.BadParameter(
            f"{path} is not a result of `kvtier bench shared-prefix --write`: {error!r}",
            param_hint="--beside",
        ) from error
