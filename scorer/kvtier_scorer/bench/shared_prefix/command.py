"""`kvtier bench shared-prefix`: the guide's high-cache and low-cache workloads against any server."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kvtier_scorer.bench.shared_prefix.client import Answer, Server
from kvtier_scorer.bench.shared_prefix.engines import read_engines
from kvtier_scorer.bench.shared_prefix.errors import ServerError
from kvtier_scorer.bench.shared_prefix.figures import Figures
from kvtier_scorer.bench.shared_prefix.load import Served, constant_concurrency
from kvtier_scorer.bench.shared_prefix.plot import write_plot
from kvtier_scorer.bench.shared_prefix.table import table
from kvtier_scorer.bench.shared_prefix.workload import (
    HIGH_CACHE,
    LOW_CACHE,
    Question,
    Workload,
    questions,
    text,
)

_WORKLOADS: Final = {"high-cache": HIGH_CACHE, "low-cache": LOW_CACHE}
_SAMPLE_WORDS: Final = 400
_COUNT: Final = click.IntRange(min=1)


@click.command("shared-prefix")
@click.option(
    "--url", required=True, help="Base URL of the server or gateway, such as http://127.0.0.1:8000."
)
@click.option(
    "--workload", type=click.Choice(list(_WORKLOADS)), default="high-cache", show_default=True,
    help="The guide's sizes; the options below change single ones.",
)  # fmt: skip
@click.option("--num-groups", type=_COUNT, help="System prompts.")
@click.option("--prompts-per-group", type=_COUNT, help="Questions about each.")
@click.option("--system-prompt-len", type=_COUNT, help="Tokens of a system prompt.")
@click.option("--question-len", type=_COUNT, help="Tokens of a question.")
@click.option("--output-len", type=_COUNT, help="Tokens of an answer.")
@click.option("--concurrency", type=_COUNT, help="Requests under way at any time.")
@click.option("--engine", "engines", multiple=True, metavar="URL", help="An engine's own URL, for hit rates.")
@click.option("--model", help="Model to ask; the first the server lists by default.")
@click.option("--name", default="measured", show_default=True, help="Of this run, in table and picture.")
@click.option(
    "--beside", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON of an earlier run, to show beside this one.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="Which prompts; another seed shares no prefix.")
@click.option(
    "--timeout", "timeout_s", default=600.0, show_default=True, help="Seconds a server may be silent."
)
@click.option("--api-key", envvar="OPENAI_API_KEY", help="Bearer token; $OPENAI_API_KEY by default.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--write", type=click.Path(dir_okay=False, path_type=Path), help="Also write JSON to this file."
)
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Also write a picture (SVG).")
def shared_prefix(  # noqa: PLR0913, PLR0917 - one parameter an option
    url: str,
    workload: str,
    num_groups: int | None,
    prompts_per_group: int | None,
    system_prompt_len: int | None,
    question_len: int | None,
    output_len: int | None,
    concurrency: int | None,
    engines: tuple[str, ...],
    model: str | None,
    name: str,
    beside: tuple[Path, ...],
    seed: int,
    timeout_s: float,
    api_key: str | None,
    output: str,
    write: Path | None,
    plot: Path | None,
) -> None:
    """Ask questions about shared system prompts, a constant number at a time.

    Exit status: 0 measured, 2 bad input, 3 the server did not answer, or refused a request.
    """
    asked = {
        "groups": num_groups,
        "prompts_per_group": prompts_per_group,
        "system_tokens": system_prompt_len,
        "question_tokens": question_len,
        "output_tokens": output_len,
        "concurrency": concurrency,
    }
    shape = replace(_WORKLOADS[workload], **{key: value for key, value in asked.items() if value is not None})
    earlier = [_read(path) for path in beside]
    figures = asyncio.run(_measure(url, shape, engines, model, name, seed, timeout_s, api_key))
    runs = [*earlier, figures]
    document = json.dumps({"shared_prefix": figures.to_json()}, indent=2)
    if write is not None:
        write.parent.mkdir(parents=True, exist_ok=True)
        write.write_text(document + "\n", encoding="utf-8")
    if plot is not None:
        write_plot(runs, plot)
    if output == "json":
        click.echo(document)
    else:
        Console().print(table(runs))
    if figures.failed:
        raise ServerError(
            f"{figures.failed} of {shape.requests} requests failed; the first: {figures.failure}"
        )


async def _measure(  # noqa: PLR0913, PLR0917 - what the options say
    url: str,
    shape: Workload,
    engines: Sequence[str],
    model: str | None,
    name: str,
    seed: int,
    timeout_s: float,
    api_key: str | None,
) -> Figures:
    async with Server(url, api_key=api_key, timeout_s=timeout_s, connections=shape.concurrency) as server:
        asked_model = model or await server.first_model()
        sample = text(random.Random(seed), _SAMPLE_WORDS)  # noqa: S311 - not for secrets
        prompts = questions(shape, await server.words_per_token(asked_model, sample), seed)
        before = await read_engines(engines)

        async def ask(question: Question) -> Answer:
            return await server.ask(asked_model, question, shape.output_tokens)

        served = await _shown(ask, prompts, shape.concurrency)
        return Figures.of(name, shape, served, before, await read_engines(engines))


async def _shown(
    ask: Callable[[Question], Awaitable[Answer]], prompts: list[Question], concurrency: int
) -> Served:
    columns = (TextColumn("requests"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("requests", total=len(prompts))
        return await constant_concurrency(
            ask,
            prompts,
            concurrency,
            lambda _: progress.advance(task),
        )


def _read(path: Path) -> Figures:
    try:
        return Figures.from_json(json.loads(path.read_text(encoding="utf-8"))["shared_prefix"])
    except (ValueError, KeyError, TypeError) as error:
        raise click.BadParameter(
            f"{path} is not a result of `kvtier bench shared-prefix --write`: {error!r}",
            param_hint="--beside",
        ) from error
