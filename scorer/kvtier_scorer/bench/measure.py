"""Asks what kvtier bench shared-prefix is told to, and shows it beside earlier runs."""

import asyncio
import random
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kvtier_common.benchmarks import WORKLOADS, Workload, p90
from kvtier_common.formats.json_text import json_file
from kvtier_common.terminal.console import PlainConsole
from kvtier_common.terminal.say import json_document, say_whole
from kvtier_scorer.bench import client

_SAMPLE_WORDS: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPrefixOptions:
    """The options; None where one was left out. Attributes are named as the options are."""

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


@dataclass(frozen=True, slots=True)
class HitRate:
    """Prompt tokens found over prompt tokens asked for, by where they were found."""

    device: float
    tier: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run says."""

    name: str  # what was measured
    workload: Workload  # what was asked
    requests: int  # answered
    failed: int  # not answered, with the first reason; these count in no other figure
    failure: str
    seconds: float  # from the first request to the last answer
    ttft_s: tuple[float, ...]  # of every answer, waiting included, in the order sent
    e2e_s: tuple[float, ...]  # likewise, until the last token
    output_tokens_per_s: float  # generated tokens over `seconds`
    tokens_per_s: float  # tokens of prompts and answers over `seconds`, the guide's "overall throughput"
    hit_rate: HitRate | None  # by the engines' own counters; None where they were not asked
    # part of all prompt tokens that each engine got; empty where they were not asked
    engine_share: tuple[float, ...]

    @classmethod
    def of(
        cls,
        name: str,
        workload: Workload,
        result: client.LoadResult,
        before: Mapping[str, client.FoundTokens],
        after: Mapping[str, client.FoundTokens],
    ) -> Self:
        """Figures of a run and of what its engines counted before and after it."""
        answers = [answer for answer in result.answers if not answer.error]
        failed = [answer for answer in result.answers if answer.error]
        output = sum(answer.output_tokens for answer in answers)
        prompt = sum(answer.prompt_tokens for answer in answers)
        by_engine = {url: after[url] - before[url] for url in after}
        total = sum(by_engine.values(), client.FoundTokens())
        known = total.queried > 0
        return cls(
            name=name,
            workload=workload,
            requests=len(answers),
            failed=len(failed),
            failure=failed[0].error if failed else "",
            seconds=result.seconds,
            ttft_s=tuple(answer.ttft_s for answer in answers),
            e2e_s=tuple(answer.e2e_s for answer in answers),
            output_tokens_per_s=output / result.seconds,
            tokens_per_s=(output + prompt) / result.seconds,
            hit_rate=HitRate(total.device / total.queried, total.tier / total.queried) if known else None,
            engine_share=tuple(tokens.queried / total.queried for tokens in by_engine.values())
            if known
            else (),
        )

    def to_json(self) -> dict[str, Any]:
        """Every figure with its mean and P90, and every sample."""
        summary = {}
        if self.requests:
            summary = {
                "ttft_mean_s": statistics.fmean(self.ttft_s),
                "ttft_p90_s": p90(self.ttft_s),
                "e2e_mean_s": statistics.fmean(self.e2e_s),
                "e2e_p90_s": p90(self.e2e_s),
            }
        return {**asdict(self), **summary}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Figures of an earlier run; KeyError if a figure is missing, TypeError if one is of another kind."""
        hit_rate = document["hit_rate"]
        return cls(
            name=str(document["name"]),
            workload=Workload(**document["workload"]),
            requests=int(document["requests"]),
            failed=int(document["failed"]),
            failure=str(document["failure"]),
            seconds=float(document["seconds"]),
            ttft_s=tuple(map(float, document["ttft_s"])),
            e2e_s=tuple(map(float, document["e2e_s"])),
            output_tokens_per_s=float(document["output_tokens_per_s"]),
            tokens_per_s=float(document["tokens_per_s"]),
            hit_rate=None if hit_rate is None else HitRate(**hit_rate),
            engine_share=tuple(map(float, document["engine_share"])),
        )


def measure(options: SharedPrefixOptions) -> None:
    """Ask, print, and write what was asked for.

    Raises ServerError: the server does not answer, or refused a request; click.BadParameter: an earlier run's
    file is none.
    """
    shape = _shape(options)
    earlier = [_read(path) for path in options.beside]
    figures = asyncio.run(_measure(options, shape))
    runs = [*earlier, figures]
    document = json_document({"shared_prefix": figures.to_json()})
    if options.write is not None:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(document + "\n", encoding="utf-8")
    if options.output == "json":
        say_whole(document)
    else:
        PlainConsole().print(table(runs))
    if figures.failed:
        raise client.ServerError(
            f"{figures.failed} of {shape.requests} requests failed; the first: {figures.failure}"
        )


def _shape(options: SharedPrefixOptions) -> Workload:
    changed = {
        "groups": options.num_groups,
        "prompts_per_group": options.prompts_per_group,
        "system_tokens": options.system_prompt_len,
        "question_tokens": options.question_len,
        "output_tokens": options.output_len,
        "concurrency": options.concurrency,
    }
    sizes = {key: value for key, value in changed.items() if value is not None}
    return replace(WORKLOADS[options.workload], **sizes)


async def _measure(options: SharedPrefixOptions, shape: Workload) -> Figures:
    connecting = client.Server(
        options.url, api_key=options.api_key, timeout_s=options.timeout_s, connections=shape.concurrency
    )
    async with connecting as server:
        model = options.model or await server.first_model()
        sample = client.text(random.Random(options.seed), _SAMPLE_WORDS)  # noqa: S311 - not for secrets
        prompts = client.questions(shape, await server.words_per_token(model, sample), options.seed)
        before = await client.read_engines(options.engines)

        async def ask(question: client.Question) -> client.Answer:
            return await server.ask(model, question, shape.output_tokens)

        result = await _ask_all(ask, prompts, shape.concurrency)
        return Figures.of(options.name, shape, result, before, await client.read_engines(options.engines))


async def _ask_all(
    ask: Callable[[client.Question], Awaitable[client.Answer]],
    prompts: list[client.Question],
    concurrency: int,
) -> client.LoadResult:
    columns = (TextColumn("requests"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=PlainConsole(stderr=True), transient=True) as progress:
        task = progress.add_task("requests", total=len(prompts))
        return await client.constant_concurrency(ask, prompts, concurrency, lambda _: progress.advance(task))


def _read(path: Path) -> Figures:
    try:
        return Figures.from_json(json_file(path)["shared_prefix"])
    except (ValueError, KeyError, TypeError) as error:
        raise click.BadParameter(
            f"{path} is not a result of `kvtier bench shared-prefix --write`: {error!r}",
            param_hint="--beside",
        ) from error


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"


def _hit_rate(figures: Figures, name: str) -> str:
    return "" if figures.hit_rate is None else f"{getattr(figures.hit_rate, name):.1%}"


_ROWS: Final[tuple[tuple[str, Callable[[Figures], str]], ...]] = (
    ("mean TTFT", lambda run: _seconds(statistics.fmean(run.ttft_s))),
    ("P90 TTFT", lambda run: _seconds(p90(run.ttft_s))),
    ("mean E2E latency", lambda run: _seconds(statistics.fmean(run.e2e_s))),
    ("P90 E2E latency", lambda run: _seconds(p90(run.e2e_s))),
    ("throughput, all tokens", lambda run: f"{run.tokens_per_s:,.0f} tokens/s"),
    ("throughput, answers", lambda run: f"{run.output_tokens_per_s:,.1f} tokens/s"),
    ("found on the device", lambda run: _hit_rate(run, "device")),
    ("found in a tier", lambda run: _hit_rate(run, "tier")),
    ("share of each engine", lambda run: " ".join(f"{share:.0%}" for share in run.engine_share)),
    ("failed", lambda run: str(run.failed) if run.failed else ""),
)


def table(runs: Sequence[Figures]) -> Table:
    """One column a run, without the rows that no run has anything for."""
    shape = runs[-1].workload
    columns = Table(
        title=f"{shape.groups} system prompts of {shape.system_tokens:,} tokens, "
        f"{shape.prompts_per_group} questions of {shape.question_tokens:,} each, "
        f"answers of {shape.output_tokens:,}, {shape.concurrency} under way",
        title_justify="left",
    )
    columns.add_column("")
    for run in runs:
        columns.add_column(run.name, justify="right")
    for label, cell in _ROWS:
        cells = [cell(run) if run.requests else "-" for run in runs]
        if any(cells):
            columns.add_row(label, *cells)
    return columns
