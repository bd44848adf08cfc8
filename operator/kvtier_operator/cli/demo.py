"""`kvtier demo`: the main job on this machine, measured, with a report."""

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kvtier_common.terminal.say import say
from kvtier_operator.cli.main import EXIT_REJECTED
from kvtier_operator.errors import RuntimeFailedError

if TYPE_CHECKING:
    from kvtier_common.terminal.console import PlainConsole
    from kvtier_operator.api.resource import KVCacheTier
    from kvtier_operator.planning.observed import Observed
    from kvtier_operator.planning.plan import Plan
    from kvtier_operator.runtime.demo.prompts import Lengths
    from kvtier_operator.runtime.store import StorePlace

# Of the whole time: the second part's four engines take longer to start than the first part's two, the
# third part's three compute little.
_ROUTING_SHARE: Final = 2 / 5
_SHARING_SHARE: Final = 1 / 5
_RANDOM_NOTE: Final = (
    "a Llama of 76 million random weights (8 layers, hidden 768, 12 heads, 2 KV heads, float32) with a BPE "
    "tokenizer trained on the spot; the time to the first token does not depend on the weights' values, so a "
    "trained model of this shape takes as long"
)


@click.command(short_help="Serve long prompts with and without the tiers.")
@click.option(
    "--model",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of a real model; without it a small one with random weights is made and cached.",
)
@click.option(
    "--tokens",
    type=click.IntRange(min=256),
    help="Tokens of each document; by default 15,500, and fewer where that many are computed too slowly.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0),
    default=5,
    show_default=True,
    help="Time to be done in: a slow machine asks about shorter documents and repeats less.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/demo"),
    show_default=True,
    help="Folder for report.json and report.html.",
)
def demo(*, model: Path | None, tokens: int | None, minutes: float, output: Path) -> None:
    """Serve long prompts with a real vLLM: cold, from CPU memory, from the device, with the tier off.

    Then two engines behind one URL: tier off, tier on with each in turn, tier on with the picker. Then two
    engines and one store: the second finds what the first has computed, and so does a third after both.

    Needs no GPU and no network. Exit status: 0 shown, 1 rejected by a check, 3 an engine failed.
    """
    from rich.text import Text  # noqa: PLC0415 - only here

    from kvtier_common.terminal.console import PlainConsole  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.demo.prompts import Questions, corpus, demo_documents  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.demo.report import Report, routing_table, sharing_table, table  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.demo.routing import in_one_line, longer_tails, run_routing  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.demo.sharing import run_sharing  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.demo.tier import run_tier  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.machine import run_folder  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.session import INTERRUPTED, until_signalled  # noqa: PLC0415 - as above

    console = PlainConsole(soft_wrap=True)
    started = time.monotonic()
    text = corpus()
    folder, note = _model(model, text, console)
    lengths = _lengths(folder, tokens, 60 * minutes, console)
    one, two, three, store = _plans(folder, lengths, random=model is None)
    documents = demo_documents(text, folder, lengths.document_tokens)
    logs = run_folder("demo", None)

    async def measure() -> Report:
        until_s = started + 60 * minutes
        others_s = (_ROUTING_SHARE + _SHARING_SHARE) * 60 * minutes
        asked = Questions(documents, lengths.document_tokens, until_s - others_s)
        result, facts = await run_tier(one, folder, asked, logs, console)
        routing_until_s = until_s - _SHARING_SHARE * 60 * minutes
        system_prompts = asked.shorten(lengths.system_tokens, routing_until_s)
        routing = await run_routing(two, folder, system_prompts, logs, console)
        sharing = await run_sharing(three, folder, asked, store, logs, console)
        return Report(result, routing, sharing, facts, one, note, lengths.note)

    report = asyncio.run(until_signalled(measure()))
    if report is None:
        console.print("stopped; nothing is left running")
        sys.exit(INTERRUPTED)
    json_path, html_path = report.write(output)
    result, routing = report.tier, report.routing
    console.print(table(result))
    console.print(routing_table(routing))
    console.print(sharing_table(report.sharing))
    console.print(
        Text.assemble(
            (f"{result.over_off:.0f} times faster", "bold green"),
            f" than with the tier off ({result.speedup:.0f} times than cold), "
            f"{result.over_device_hit:.2f} times a device-cache hit; outputs are ",
            "equal" if result.outputs_equal else ("not equal", "red"),
            ".",
        )
    )
    console.print(f"Two engines: {in_one_line(routing)}.")
    sharing = report.sharing
    console.print(
        f"One store: {sharing.speedup:.0f} times faster than computing, on an engine new to the prompt; "
        f"outputs are {'equal' if sharing.outputs_equal else 'not equal'}. "
        f"{time.monotonic() - started:.0f} s in all."
    )
    for remark in (longer_tails(routing), lengths.note, report.facts.load_note):
        if remark:
            console.print(remark)
    console.print(f"The model is {note}.")
    console.print(f"report: {html_path} and {json_path.name} beside it")


def _model(model: Path | None, text: str, console: "PlainConsole") -> tuple[Path, str]:
    """The model's folder and what it is; the random one is made the first time."""
    from kvtier_operator.runtime.demo.prompts import ModelShape, cache_folder, random_model  # noqa: PLC0415

    if model is not None:
        return model.absolute(), f"{model.absolute().name}, from {model.absolute()}"
    started = time.monotonic()
    folder = random_model(ModelShape(), text, cache_folder(), console.print)
    console.print(f"model: {folder} ({time.monotonic() - started:.1f} s)")
    return folder, _RANDOM_NOTE


def _lengths(model: Path, tokens: int | None, within_s: float, console: "PlainConsole") -> "Lengths":
    """How long documents and system prompts are: what was asked for, or what this machine is done with."""
    from kvtier_operator.runtime.demo.prompts import default_lengths, fitting_lengths, measure_pace  # noqa: PLC0415 - after the model

    try:
        with console.status("measuring how fast this machine computes"):
            lengths = fitting_lengths(measure_pace(model), within_s)
    except RuntimeFailedError as error:
        lengths = default_lengths(str(error))
    return lengths if tokens is None else lengths.with_documents(tokens)


def _plans(folder: Path, lengths: "Lengths", *, random: bool) -> "tuple[Plan, Plan, Plan, StorePlace]":
    """Plans of one engine with a tier, of two with smaller caches, and of engines before a store."""
    from kvtier_operator.cli.inputs.load import load_resources  # noqa: PLC0415 - after the model has been made
    from kvtier_operator.cli.inputs.observe import observe  # noqa: PLC0415 - as above
    from kvtier_operator.planning.kv_cache.cost import resolve_geometry  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.demo.routing import RoutingLoad, fit_routing_resource  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.demo.sharing import fit_sharing_resource, store_place  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.demo.tier import RESOURCE_PATH, fit_resource  # noqa: PLC0415 - as above

    [(_, resource)] = load_resources([str(RESOURCE_PATH)])
    observed = observe(resource, model_config=str(folder / "config.json"), local=True)
    name = resource.spec.model.name if random else folder.name
    per_token = resolve_geometry(resource.spec, observed).kv_bytes_per_token_per_rank
    load = RoutingLoad(system_tokens=lengths.system_tokens)
    tokens = lengths.document_tokens
    store = store_place(tokens, per_token)
    return (
        _accept(fit_resource(resource, name, tokens, per_token), observed),
        _accept(fit_routing_resource(resource, name, load, per_token), observed),
        _accept(fit_sharing_resource(resource, name, tokens, per_token, store), observed),
        store,
    )


def _accept(resource: "KVCacheTier", observed: "Observed") -> "Plan":
    """The plan; ends the program where a check rejects it."""
    from kvtier_operator.cli.inputs.plans import refusals  # noqa: PLC0415 - as above
    from kvtier_operator.planning.planner import make_plan  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.demo.tier import RESOURCE_PATH  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.machine import MachineCapabilities, why_not  # noqa: PLC0415 - as above

    plan = make_plan(resource, observed)
    for line in refusals(str(RESOURCE_PATH), plan):
        say(line, err=True)
    if plan.rejected:
        sys.exit(EXIT_REJECTED)
    shm_bytes = plan.budget.shm_bytes * resource.spec.least_replicas
    if reason := why_not(resource.spec, shm_bytes, MachineCapabilities.detect_capabilities()):
        raise RuntimeFailedError(reason)
    return plan
