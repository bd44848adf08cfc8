"""vLLM's arguments that a benchmark's engines get from outside, such as those of a Plan, and its LLM."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

from typing_extensions import Self, override

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json_object
from kvtier_common.one_line import one_line
from kvtier_connector.config import CONNECTOR_NAME, parse_extra_config
from kvtier_connector.errors import SettingError
from kvtier_connector.supported import SERVE_ARGUMENTS

if TYPE_CHECKING:
    from vllm import LLM


_MOST_SHOWN: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Options of `vllm serve` that a person asks for, with what a benchmark computes with; its own win."""

    arguments: tuple[str, ...] = ()  # as on the command line of `vllm serve`, without the model
    # value of --kv-transfer-config, which loads kvtier's connector; None if it is not given
    transfer: Mapping[str, Any] | None = None
    block_tokens: int | None = None  # tokens of a KV block; None for vLLM's default
    ranks: int = 1  # GPUs that share each layer
    dtype: str = "auto"  # element type of what is computed
    cache_dtype: str = "auto"  # element type of the KV cache

    @classmethod
    def read(cls, arguments: Sequence[str]) -> Self:
        """Read a command line; what is not of interest here is left to vLLM."""
        parser = _Parser(add_help=False, allow_abbrev=False)
        parser.add_argument("--kv-transfer-config", type=_json_object)
        parser.add_argument("--block-size", type=int)
        parser.add_argument("--tensor-parallel-size", "-tp", type=int, default=1)
        parser.add_argument("--dtype", default="auto")
        parser.add_argument("--kv-cache-dtype", default="auto")
        known, _ = parser.parse_known_args(list(arguments))
        transfer = known.kv_transfer_config
        if transfer is not None and transfer.get("kv_connector") != CONNECTOR_NAME:
            raise SettingError(
                f"--kv-transfer-config: kv_connector: got {transfer.get('kv_connector')!r}, must be "
                f"{CONNECTOR_NAME!r}; vLLM's own connector is measured beside it anyway"
            )
        if transfer is not None:
            parse_extra_config(transfer.get("kv_connector_extra_config", {}))
        return cls(
            arguments=tuple(arguments),
            transfer=transfer,
            block_tokens=known.block_size,
            ranks=known.tensor_parallel_size,
            dtype=known.dtype,
            cache_dtype=known.kv_cache_dtype,
        )


def _json_object(text: str) -> dict[str, Any]:
    try:
        return parse_json_object(text)
    except MalformedError as error:
        raise argparse.ArgumentTypeError(
            f"{one_line(text, _MOST_SHOWN)!r} is not a JSON object: {error}"
        ) from error


class _Parser(argparse.ArgumentParser):
    @override
    def error(self, message: str) -> NoReturn:
        raise SettingError(f"vLLM's arguments: {message}")


NO_SERVE_OPTIONS: Final = ServeOptions()


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

    The benchmark's own settings win over arguments of `vllm serve`, or over defaults where there are none.
    """
    from vllm import LLM  # noqa: PLC0415 - only an engine's process needs vLLM

    outer = read_arguments(arguments, settings["model"]) if arguments else defaults
    llm = LLM(**(outer | _ALWAYS | settings))
    if settings.get("load_format") == "dummy":
        llm.collective_rpc("draw_weights")
    return llm


def read_arguments(arguments: Sequence[str], model: str) -> dict[str, Any]:
    """Return what `vllm serve` makes of arguments, as arguments of `LLM`, which a server's own are not.

    The model is its folder; without a network vLLM looks for it here already.
    """
    from vllm import EngineArgs  # noqa: PLC0415 - as above

    parsed = serve_parser().parse_args(list(arguments))
    for name, value in (_ALONE | {"model": model}).items():
        setattr(parsed, name, value)
    return dict(vars(EngineArgs.from_cli_args(parsed)))


def serve_parser() -> Any:  # noqa: ANN401 - vLLM has no types
    """Return what reads the arguments of `vllm serve`; ModuleNotFoundError if this vLLM has it elsewhere."""
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: PLC0415 - as above

    for name in SERVE_ARGUMENTS:
        try:
            return import_module(name).make_arg_parser(FlexibleArgumentParser())
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(" and ".join(SERVE_ARGUMENTS))
