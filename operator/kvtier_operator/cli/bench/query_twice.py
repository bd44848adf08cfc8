"""`kvtier bench query-twice`: one long context, asked cold and warm, against any OpenAI-compatible server."""

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from kvtier_common import options
from kvtier_common.terminal.say import json_document, say, say_whole

if TYPE_CHECKING:
    from kvtier_operator.runtime.measure import QueryTwice


@click.command("query-twice", short_help="Time to first token, cold and from a cache.")
@click.option("--url", required=True, help="Base URL of the server, such as http://127.0.0.1:8000.")
@click.option(
    "--context", "context_file", required=True, type=click.File(encoding="utf-8", errors="replace"),
    help="Text file with the long context; - for standard input.",
)  # fmt: skip
@click.option(
    "--question", default="Summarize this in 2 sentences.", show_default=True, help="Asked after the context."
)
@click.option("--repeat", default=5, show_default=True, type=click.IntRange(1, 1000), help="Warm queries.")
@click.option("--model", help="Model to ask; the first the server lists by default.")
@click.option("--max-tokens", default=16, show_default=True, type=click.IntRange(1), help="Answer's length.")
@click.option("--chat/--completion", default=True, show_default=True, help="Which API to use.")
@click.option("--api-key", envvar="OPENAI_API_KEY", help="Bearer token; $OPENAI_API_KEY by default.")
@options.output
@options.write
def query_twice(  # noqa: PLR0913 - one parameter an option
    *,
    url: str,
    context_file: TextIO,
    question: str,
    repeat: int,
    model: str | None,
    max_tokens: int,
    chat: bool,
    api_key: str | None,
    output: str,
    write: Path | None,
) -> None:
    """Measure what a prefix cache saves: time to first token of the same query, cold and warm.

    A context that the server has seen before is not cold: restart the server, or change the context's
    first words. Exit status: 0 measured, 2 bad input, 3 the server did not answer or refused.
    """
    from kvtier_operator.runtime.measure import Answer, OpenAIClient, Query  # noqa: PLC0415 - only here
    from kvtier_operator.runtime.measure import query_twice as measure  # noqa: PLC0415 - as above

    def tell(number: int, answer: Answer) -> None:
        if output == "text":
            kind = f"warm {number}/{repeat}" if number else "cold"
            say(f"{kind}: {answer.ttft_s:.3f} s to the first token", err=True)

    prompt = f"{context_file.read()}\n\n{question}"
    with OpenAIClient(url, api_key=api_key) as client:
        name = model or client.first_model()
        query = (Query.chat if chat else Query.completion)(name, prompt, max_tokens)
        result = measure(client, name, query, repeat, tell)
    document = json_document({"query_twice": result.to_json()})
    if write is not None:
        write.parent.mkdir(parents=True, exist_ok=True)
        write.write_text(document + "\n", encoding="utf-8")
    if output == "json":
        say_whole(document)
    else:
        _print_table(result)


def _print_table(result: "QueryTwice") -> None:
    from rich.table import Table  # noqa: PLC0415 - only for a reader
    from rich.text import Text  # noqa: PLC0415 - as above

    from kvtier_common.terminal.console import PlainConsole  # noqa: PLC0415 - as above

    warm = result.warm_samples
    first, third = warm.quartiles_s
    table = Table(
        title=f"{result.model}: {result.cold.prompt_tokens or '?'} prompt tokens", title_justify="left"
    )
    for column in ("query", "TTFT", "spread", "samples"):
        table.add_column(column, justify="left" if column == "query" else "right")
    table.add_row("cold", f"{result.cold.ttft_s:.3f} s", "", "1")
    table.add_row(
        "warm (median)", f"{warm.median_s:.3f} s", f"{first:.3f} to {third:.3f} s", str(len(warm.seconds))
    )
    console = PlainConsole()
    console.print(table)
    equal = ("the same", "") if result.outputs_equal else ("not the same", "red")
    faster = (f"{result.speedup:.1f} times faster warm", "bold")
    console.print(Text.assemble(faster, "; outputs at temperature 0 are ", equal))
