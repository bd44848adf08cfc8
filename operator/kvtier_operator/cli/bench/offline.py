"""`kvtier bench offline`: N prompts of M tokens, twice, for each backend that can run here."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvtier_common import options
from kvtier_common.terminal.say import say, say_json
from kvtier_operator.errors import RuntimeFailedError

if TYPE_CHECKING:
    from kvtier_operator.api.resource import KVCacheTier
    from kvtier_operator.planning.plan import Plan
    from kvtier_operator.runtime.measure.offline import OfflineTimes


@click.command(short_help="Generate from long prompts twice, without a server.")
@click.option("--num-prompts", default=4, show_default=True, type=click.IntRange(2), help="Prompts of a run.")
@click.option(
    "--num-tokens", default=2000, show_default=True, type=click.IntRange(64), help="Tokens of each."
)
@click.option(
    "--model",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of a model; without it the demo's, with random weights.",
)
@click.option(
    "--log-dir", type=click.Path(file_okay=False, path_type=Path), help="Folder for logs and files."
)
@options.output
@options.write
def offline(  # noqa: PLR0913 - one parameter an option
    *,
    num_prompts: int,
    num_tokens: int,
    model: Path | None,
    log_dir: Path | None,
    output: str,
    write: Path | None,
) -> None:
    """Generate from long prompts twice without a server: the second run finds their prefixes in the tiers.

    The device cache holds one prompt, so plain vLLM computes every prompt again. Each backend that can run
    here has an engine and a process of its own; so has vLLM with the tiers off.
    """
    from kvtier_operator.runtime.folders import run_folder  # noqa: PLC0415 - only here
    from kvtier_operator.runtime.runnable import NO_VLLM, MachineCapabilities  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.stop import INTERRUPTED, until_signalled  # noqa: PLC0415 - as above

    if MachineCapabilities.detect_capabilities().vllm_version is None:
        raise RuntimeFailedError(NO_VLLM)
    folder = model.absolute() if model else _random_model()
    plans = _plans(folder, num_prompts, num_tokens)
    times = asyncio.run(
        until_signalled(_measure(plans, folder, run_folder("offline", log_dir), num_prompts, num_tokens))
    )
    if times is None:
        sys.exit(INTERRUPTED)
    document = {"offline": {name: result.to_json() for name, result in times.items()}}
    if write is not None:
        write.parent.mkdir(parents=True, exist_ok=True)
        write.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if output == "json":
        say_json(document)
    else:
        _print_table(times, f"{num_prompts} prompts of {num_tokens:,} tokens")


def _random_model() -> Path:
    from kvtier_operator.runtime.demo.workload.corpus import corpus  # noqa: PLC0415 - only without a model
    from kvtier_operator.runtime.demo.workload.model import ModelShape, cache_folder, random_model  # noqa: PLC0415

    return random_model(ModelShape(), corpus(), cache_folder(), lambda step: say(step, err=True))


def _plans(model: Path, num_prompts: int, num_tokens: int) -> "dict[str, Plan]":
    """A plan for each backend that can run here; why the others cannot is said on standard error.

    Raises:
        RuntimeFailedError: None can.
    """
    from kvtier_operator.api.parse import parse_resource  # noqa: PLC0415 - after the model has been made
    from kvtier_operator.api.spec.tiers import Backend  # noqa: PLC0415 - as above
    from kvtier_operator.cli.inputs.load import load_resources  # noqa: PLC0415 - as above
    from kvtier_operator.cli.inputs.observe import observe  # noqa: PLC0415 - as above
    from kvtier_operator.planning.kv_cache.resolve import resolve_geometry  # noqa: PLC0415 - as above
    from kvtier_operator.planning.planner import make_plan  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.demo.setup import RESOURCE_PATH, fitted  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.runnable import MachineCapabilities, why_not  # noqa: PLC0415 - as above

    [(_, base)] = load_resources([str(RESOURCE_PATH)])
    observed = observe(base, model_config=str(model / "config.json"), local=True)
    per_token = resolve_geometry(base.spec, observed).kv_bytes_per_token_per_rank
    base = fitted(base, model.name, num_tokens, per_token, prompts=num_prompts)
    abilities = MachineCapabilities.detect_capabilities()
    plans, left_out = {}, {}
    for backend in Backend:
        document = base.manifest()
        document["spec"]["backend"] = str(backend)
        resource: KVCacheTier = parse_resource(document, "the bench's resource")
        plan = make_plan(resource, observed)
        if reason := why_not(resource.spec, plan.budget.shm_bytes, abilities):
            left_out[str(backend)] = reason
        else:
            plans[str(backend)] = plan
    if not plans:
        raise RuntimeFailedError("; ".join(dict.fromkeys(left_out.values())))
    for name, reason in left_out.items():
        say(f"{name}: left out: {reason}", err=True)
    return plans


async def _measure(
    plans: "dict[str, Plan]", model: Path, folder: Path, num_prompts: int, num_tokens: int
) -> "dict[str, OfflineTimes]":
    from kvtier_operator.runtime.measure.offline import offline_prompts, run_offline  # noqa: PLC0415
    from kvtier_operator.runtime.translate import without_tier  # noqa: PLC0415

    prompts = offline_prompts(num_prompts, num_tokens)
    engines: dict[str, Any] = {name: plan.engine for name, plan in plans.items()}
    engines["tiers off"] = without_tier(next(iter(engines.values())))
    times = {}
    for name, engine in engines.items():
        say(f"{name}: {num_prompts} prompts of {num_tokens} tokens, twice", err=True)
        times[name] = await run_offline(engine, name.replace(" ", "-"), model, folder, prompts)
    return times


def _print_table(times: "dict[str, OfflineTimes]", title: str) -> None:
    from rich.table import Table  # noqa: PLC0415 - only for a reader

    from kvtier_common.terminal.console import PlainConsole  # noqa: PLC0415 - as above

    table = Table(title=title, title_justify="left")
    table.add_column("backend")
    for column in ("first run", "second run", "speedup", "from a cache", "outputs"):
        table.add_column(column, justify="right")
    for name, result in times.items():
        table.add_row(
            name,
            f"{result.first_run_s:.2f} s",
            f"{result.second_run_s:.2f} s",
            f"{result.speedup:.2f}x",
            f"{result.cached_tokens / result.prompt_tokens:.0%}",
            "equal" if result.outputs_equal else "not equal",
        )
    PlainConsole().print(table)
