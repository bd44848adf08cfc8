"""`kvtier bench shared-prefix`: the command line. What it runs is loaded when it runs."""

from pathlib import Path

import click

from kvtier_common import options as common
from kvtier_common.benchmarks import WORKLOADS

_COUNT = click.IntRange(min=1)


@click.command("shared-prefix", short_help="Questions about shared system prompts.")
@click.option(
    "--url", required=True, help="Base URL of the server or gateway, such as http://127.0.0.1:8000."
)
@click.option(
    "--workload", type=click.Choice([*WORKLOADS]), default="high-cache", show_default=True,
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
@click.option("--name", default="measured", show_default=True, help="Of this run, in the table.")
@click.option(
    "--beside", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON of an earlier run, to show beside this one.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="Which prompts; another seed shares no prefix.")
@click.option(
    "--timeout", "timeout_s", default=600.0, show_default=True, help="Seconds a server may be silent."
)
@click.option("--api-key", envvar="OPENAI_API_KEY", help="Bearer token; $OPENAI_API_KEY by default.")
@common.output
@common.write
def shared_prefix(**options: object) -> None:
    """Ask questions about shared system prompts, a constant number at a time.

    Exit status: 0 measured, 2 bad input, 3 the server did not answer, or refused a request.
    """
    from kvtier_scorer.bench.measure import SharedPrefixOptions, measure  # noqa: PLC0415 - loads aiohttp

    measure(SharedPrefixOptions(**options))  # type: ignore[arg-type]
