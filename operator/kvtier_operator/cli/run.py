"""`kvtier run`: a KVCacheTier's engines as processes of this machine."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvtier_common.one_line import shell_line
from kvtier_common.terminal.say import say, say_whole
from kvtier_operator.cli.inputs import options as of_all
from kvtier_operator.cli.main import EXIT_REJECTED
from kvtier_operator.errors import InvalidInputError, Problem, RuntimeFailedError

if TYPE_CHECKING:
    from kvtier_operator.planning.plan import Plan
    from kvtier_operator.runtime.session import RunOptions
    from kvtier_operator.runtime.store import StorePlace


def _words(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, ...]:
    """A command line as a shell would take it apart."""
    try:
        return tuple(shlex.split(value or ""))
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no command line: {error}") from error


@click.command(short_help="Serve a KVCacheTier on this machine.")
@of_all.filename
@click.option(
    "--model",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Local folder with the model, in place of spec.model.name.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port of the URL; spec.engine.port when it is not given."
)
@click.option(
    "--log-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for logs and files; a new one under ~/.local/state/kvtier when it is not given.",
)
@click.option(
    "--program",
    callback=_words,
    help="Program that takes vLLM's arguments, such as 'vllm serve'; this Python's vLLM by default.",
)
@click.option("--dry-run", is_flag=True, help="Print the commands that would run, and stop.")
def run(  # noqa: PLR0913 - one parameter an option
    *,
    path: str,
    model: Path | None,
    host: str,
    port: int | None,
    log_dir: Path | None,
    program: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Serve a KVCacheTier on this machine: real vLLM with its tiers, behind one OpenAI-compatible URL.

    Ends on Ctrl-C and SIGTERM and leaves nothing running. Exit status: 0 stopped, 1 rejected by a check,
    2 bad input, 3 an engine failed (with its log's relevant lines).
    """
    import asyncio  # noqa: PLC0415 - `kvtier plan` and its like start without it

    from kvtier_operator.runtime.machine import run_folder  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.session import MINIMUM_STARTUP_S, RunOptions  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.translate import DEFAULT_PROGRAM  # noqa: PLC0415 - as above

    plan, store = _plan(path, model, log_dir, dry_run=dry_run)
    options = RunOptions(
        host=host,
        port=port or plan.engine.port,
        folder=run_folder(plan.resource.metadata.name, log_dir),
        model=model.absolute() if model else None,
        program=program or DEFAULT_PROGRAM,
        startup_s=max(plan.budget.startup_s, MINIMUM_STARTUP_S),
    )
    if dry_run:
        _print_commands(plan, options, store)
        return
    from kvtier_operator.runtime.serve import serve  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.session import until_signalled  # noqa: PLC0415 - as above

    asyncio.run(until_signalled(serve(plan, options, store)))


def _plan(
    path: str, model: Path | None, log_dir: Path | None, *, dry_run: bool
) -> "tuple[Plan, StorePlace | None]":
    """The one Plan to run, and where the store will be that kvtier makes for it, if it does.

    Ends the program where a check rejects it or this machine cannot run it; of a dry run it says the latter.
    """
    from kvtier_operator.cli.inputs.load import load  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.cli.inputs.plans import plans_of, remarks, without_pods  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.machine import MachineCapabilities, why_not  # noqa: PLC0415 - as above
    from kvtier_operator.runtime.store import with_local_store  # noqa: PLC0415 - as above

    loaded = load([path])
    if len(loaded.resources) > 1:
        names = ", ".join(resource.metadata.name for _, resource in loaded.resources)
        message = f"holds {len(loaded.resources)} resources ({names}); run them one by one"
        raise InvalidInputError(path, Problem("", message))
    [(source, resource)] = loaded.resources
    resource, store = with_local_store(resource)
    loaded = replace(loaded, resources=((source, resource),))
    config = str(model / "config.json") if model else None
    [(source, plan)] = plans_of(
        loaded, model_config=config, local=True, hub=model is None, run_folder=log_dir
    )
    resource = plan.resource
    for line in (*remarks(source, plan), *without_pods(source, resource.spec)):
        say(line, err=True)
    if plan.rejected:
        sys.exit(EXIT_REJECTED)
    shm_bytes = plan.budget.shm_bytes * resource.spec.least_replicas
    if reason := why_not(resource.spec, shm_bytes, MachineCapabilities.detect_capabilities()):
        if not dry_run:
            raise RuntimeFailedError(f"{source}: {reason}")
        say(f"{source}: not on this machine: {reason}", err=True)
    if resource.spec.least_replicas == 0:
        raise RuntimeFailedError(f"{source}: spec.replicas: 0 engines to run: set it to 1 or more")
    return plan, store


def _print_commands(plan: "Plan", options: "RunOptions", store: "StorePlace | None") -> None:
    from kvtier_operator.runtime.gateway import local_routing  # noqa: PLC0415
    from kvtier_operator.runtime.session import Session  # noqa: PLC0415
    from kvtier_operator.runtime.store import store_command  # noqa: PLC0415

    if store is not None:
        say_whole(shell_line(store_command(store, options.folder / "store").argv, {}))
    session = Session(options, plan.engine, plan.resource.spec.least_replicas, local_routing(plan))
    engines = session.local_engines()
    gateway = session.local_gateway(engines)
    for local in engines:
        for command in (*local.sidecars, local.engine):
            say_whole(shell_line(command.argv, command.env))
    for command in gateway.commands() if gateway else ():
        say_whole(shell_line(command.argv, command.env))
