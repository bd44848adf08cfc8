"""`kvtier simulate`: the command line. What it runs is loaded when it runs: `kvtier --help` stays fast."""

from collections.abc import Callable
from math import isfinite
from typing import Any

import click

from kvtier_common import options as common
from kvtier_common.tier import OF_A_POD, Tier

_COUNT = click.IntRange(min=1)
_TOKENS = click.IntRange(min=1, max=10_000_000)
_PODS = click.IntRange(min=1, max=1_000)
_ABOUT_SIZES = {Tier.CPU: "CPU tier of a pod, such as 100Gi; 0 for none; the preset's by default."}


class _Finite(click.FloatRange):
    """Numbers of a range; NaN, which compares with nothing, is none of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's
        number = float(super().convert(value, param, ctx))
        return number if isfinite(number) else self.fail(f"{value!r} is not a number.", param, ctx)


class BadInputError(click.ClickException):
    """What was asked cannot be simulated; exit status 2, as for every bad input."""

    exit_code = 2


def _sizes(command: Callable[..., None]) -> Callable[..., None]:
    """An option for each tier that a pod has beyond the device."""
    for tier in reversed(OF_A_POD[1:]):
        about = _ABOUT_SIZES.get(
            tier, f"{tier.label.capitalize()} tier of a pod, such as 1Ti; none by default."
        )
        command = click.option(f"--{tier.label}", metavar="SIZE", help=about)(command)
    return command


@click.command(short_help="Replay a request trace against simulated pods.")
@click.option(
    "--trace", required=True, metavar="FILE",
    help="Mooncake's or kvtier's JSON lines; or generated: high-cache or low-cache, the guide's workloads, "
    "agents, or tenants, of whom one floods.",
)  # fmt: skip
@click.option("--num-groups", type=_COUNT, help="Generated: system prompts.")
@click.option("--prompts-per-group", type=_COUNT, help="Generated: questions about each.")
@click.option("--system-prompt-len", type=_TOKENS, help="Generated: tokens of a system prompt.")
@click.option("--question-len", type=_TOKENS, help="Generated: tokens of a question.")
@click.option("--output-len", type=_TOKENS, help="Generated: tokens of an answer.")
@click.option("--concurrency", type=_COUNT, help="Generated: requests under way at any time.")
@click.option(
    "--rate", type=_Finite(min=1e-3, max=1e6),
    help="Generated: requests a second at random times, in place of a constant concurrency.",
)  # fmt: skip
@click.option("--sessions", type=_COUNT, help="agents, tenants: sessions at any time.")
@click.option("--requests", type=_COUNT, help="agents, tenants: requests of all sessions.")
@click.option("--preset", default="qwen3-32b-2xh100", show_default=True, help="Speeds and sizes of a pod.")
@click.option("--pods", type=_PODS, default=8, show_default=True, help="Engine pods, all alike.")
@click.option(
    "--gpu-tokens", type=_COUNT, help="Tokens that a pod's device cache holds; the preset's by default."
)
@_sizes
@click.option(
    "--remote", metavar="SIZE", help="Store behind all pods, as spec.tiers.remote.capacity; none by default."
)
@click.option(
    "--remote-bandwidth", metavar="SIZE", default="11600M", show_default=True,
    help="Bytes a second from the store to one pod, as spec.tiers.remote.bandwidth.",
)  # fmt: skip
@click.option(
    "--store-bandwidth", metavar="SIZE",
    help="Bytes a second from the store to all pods together; as much as they take by default.",
)  # fmt: skip
@click.option(
    "--scrape-interval", type=_Finite(min=0.05, max=10), default=0.1, show_default=True,
    help="Seconds between two readings of a pod's metrics.",
)  # fmt: skip
@click.option(
    "--hints",
    is_flag=True,
    help="Show what hints would give: the trace without any, with true ones, inexact ones and false ones.",
)
@click.option(
    "--hint-error",
    metavar="PERCENT",
    show_default="50%",
    help="--hints: how far inexact ones are off at most.",
)
@click.option(
    "--hint-false",
    metavar="PERCENT",
    show_default="30%",
    help="--hints: part of the requests that says something false.",
)
@click.option(
    "--retained",
    metavar="PERCENT",
    show_default="30%",
    help="Part of each tier that hints may keep, at most 90%, as spec.tiers.cpu.retained.most.",
)
@click.option(
    "--tenant",
    "tenants",
    multiple=True,
    metavar="NAME:GUARANTEED:MOST",
    help="A tenant's part of each tier, such as team-a:20%:50%, as spec.tenants; give it again for more.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    help="Only this way to pick, by its name in the output; give it again for more.",
)
@click.option(
    "--weights", metavar="Q:U:GPU:CPU" + "".join(f"[:{tier.name}]" for tier in OF_A_POD[2:]),
    help="Of kvtier's scorers: queue, KV cache utilization and the prefix in each tier; 2:2:1:1 by default, "
    "which the other pickers always have.",
)  # fmt: skip
@click.option("--same-weights", is_flag=True, help="Give --weights to the other pickers too.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Order of groups, and ties."
)
@common.output
@common.write
def simulate(**options: object) -> None:
    """Replay a request trace against simulated pods, once for each way to pick a pod.

    Shows hit rate, time to first token and balance side by side.

    Exit status: 0 simulated, 2 bad input.
    """
    from kvtier_scorer.simulate.replay import SimulateOptions, replay  # noqa: PLC0415 - loads numba
    from kvtier_scorer.simulate.trace import SimulationError  # noqa: PLC0415 - see the module

    try:
        texts = {tier: options.pop(tier.label) for tier in OF_A_POD[1:]}
        sizes = {tier: size for tier, size in texts.items() if size is not None}
        replay(SimulateOptions(**options, sizes=sizes))  # type: ignore[arg-type]
    except SimulationError as error:
        raise BadInputError(str(error)) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise BadInputError(f"{error.filename}: cannot be written: {error.strerror}") from None
