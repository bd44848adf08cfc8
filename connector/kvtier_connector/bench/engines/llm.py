"""vLLM's `LLM` for a benchmark's process: from the benchmark's settings and a command line's arguments."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kvtier_connector.supported import SERVE_ARGUMENTS

if TYPE_CHECKING:
    from vllm import LLM

_ALWAYS: Final[dict[str, Any]] = {"skip_tokenizer_init": True, "seed": 0}
_ALONE: Final[dict[str, Any]] = {
    "tokenizer": None,
    "revision": None,
    "tokenizer_revision": None,
    "served_model_name": None,
    "model_loader_extra_config": {},
    "data_parallel_size": 1,
}
"""A server's arguments that mean nothing for one engine whose model is a folder."""


def make_llm(settings: dict[str, Any], arguments: Sequence[str], defaults: dict[str, Any]) -> "LLM":
    """Make an engine, with drawn weights if its settings name the worker extension that draws them.

    Args:
        settings: the benchmark's own arguments of `LLM`, which win.
        arguments: as on the command line of `vllm serve`, without the model.
        defaults: arguments of `LLM` where no command line is given.
    """
    from vllm import LLM  # noqa: PLC0415 - only an engine's process needs vLLM

    given = read_arguments(arguments, settings["model"]) if arguments else defaults
    llm = LLM(**(given | _ALWAYS | settings))
    if settings.get("load_format") == "dummy":
        llm.collective_rpc("draw_weights")
    return llm


def read_arguments(arguments: Sequence[str], model: str) -> dict[str, Any]:
    """Return what `vllm serve` makes of arguments, as arguments of `LLM`, which a server's own are not.

    Args:
        arguments: without the model.
        model: its folder; without a network vLLM looks for it here already.
    """
    from vllm import EngineArgs  # noqa: PLC0415 - as above

    parsed = serve_parser().parse_args(list(arguments))
    for name, value in (_ALONE | {"model": model}).items():
        setattr(parsed, name, value)
    return dict(vars(EngineArgs.from_cli_args(parsed)))


def serve_parser() -> Any:  # noqa: ANN401 - vLLM has no types
    """Return what reads the arguments of `vllm serve`.

    Raises:
        ModuleNotFoundError: this vLLM has it elsewhere.
    """
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: PLC0415 - as above

    for name in SERVE_ARGUMENTS:
        try:
            return import_module(name).make_arg_parser(FlexibleArgumentParser())
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(" and ".join(SERVE_ARGUMENTS))
