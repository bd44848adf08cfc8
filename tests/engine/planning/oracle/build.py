"""An engine's configuration and layers as vLLM makes them: on the meta device, without weights or ranks."""

import copy
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch
from vllm.config import set_current_vllm_config
from vllm.distributed import parallel_state
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
from vllm.model_executor.layers.mamba.abstract import MambaBase
from vllm.model_executor.model_loader import utils as loading
from vllm.v1.worker.workspace import init_workspace_manager, is_workspace_manager_initialized

_ONE_RANK: Final = ("_PP", "_DP", "_PCP", "_DCP", "_EPLB", "_WORLD", "_INNER_DP_WORLD", "_CROSS_DP")


class _Ranks:
    """A group of ranks that never talk."""

    def __init__(self, ranks: int) -> None:
        self.world_size = ranks
        self.ranks = list(range(ranks))
        self.rank = self.rank_in_group = self.local_rank = self.first_rank = 0
        self.last_rank = ranks - 1
        self.is_first_rank = self.is_last_rank = True
        self.device = torch.device("meta")
        self.unique_name = "apart"
        self.use_custom_op_call = False
        self.cpu_group = self.device_group = types.SimpleNamespace(size=lambda: ranks, rank=lambda: 0)
        self.device_communicator = self.mq_broadcaster = None


class Built:
    """One model, split over ranks: its configuration, and how each of its attention layers was made."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.config = engine_config(arguments)
        self.made: dict[int, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {}
        self.nested: set[int] = set()  # those that another layer makes
        _ranks(self.config)
        with _on_meta(self.config), _record_layers(self.made, self.nested):
            self.models = [loading.initialize_model(self.config)]
            if draft := getattr(self.config.speculative_config, "draft_model_config", None):
                self.models.append(loading.initialize_model(self.config, model_config=draft))

    def again(self, arguments: Mapping[str, Any]) -> Any:
        """The configuration of other arguments, with the same layers made anew for it."""
        config = engine_config(arguments)
        _ranks(config)
        swapped = {id(self.config): config} | {
            id(getattr(self.config, name)): getattr(config, name)
            for name in (
                "cache_config",
                "model_config",
                "scheduler_config",
                "parallel_config",
                "quant_config",
            )
        }
        context = config.compilation_config.static_forward_context
        with _on_meta(config):
            for name, layer in self.config.compilation_config.static_forward_context.items():
                if id(layer) in self.nested:
                    continue
                if id(layer) not in self.made or isinstance(layer, MambaBase):
                    context[name] = _move(layer, swapped)
                    continue
                cls, positional, named = self.made[id(layer)]
                cls(
                    *(swapped.get(id(value), value) for value in positional),
                    **{key: swapped.get(id(value), value) for key, value in named.items()},
                )
        return config


loading.record_metadata_for_reloading = lambda _: None  # nobody loads weights anew: a third of the time


_MODELS: Final[dict[str, Any]] = {}


# What a model's configuration does not depend on.
_OF_THE_ENGINE: Final = frozenset(
    {"tensor_parallel_size", "kv_cache_dtype", "block_size", "kv_transfer_config", "speculative_config"}
)


class _Arguments(EngineArgs):  # type: ignore[misc]
    """The engine's arguments, of which the model's files are read once for the same others."""

    def create_model_config(self) -> Any:
        key = repr({name: value for name, value in vars(self).items() if name not in _OF_THE_ENGINE})
        if key not in _MODELS:
            _MODELS[key] = super().create_model_config()
        fresh = copy.copy(_MODELS[key])
        fresh.config_updated = False  # vLLM corrects the other parts by it once
        return fresh


def engine_config(arguments: Mapping[str, Any]) -> Any:
    """What `vllm serve` makes of these arguments."""
    return _Arguments(
        **{"enforce_eager": True, "skip_tokenizer_init": True, **arguments}
    ).create_engine_config()


def _ranks(config: Any) -> None:
    for name in _ONE_RANK:
        if hasattr(parallel_state, name):
            setattr(parallel_state, name, _Ranks(1))
    if not is_workspace_manager_initialized():
        init_workspace_manager(torch.device("meta"))
    parallel_state._TP = parallel_state._EP = _Ranks(config.parallel_config.tensor_parallel_size)


@contextmanager
def _on_meta(config: Any) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(config.model_config.dtype)
    try:
        with set_current_vllm_config(config), torch.device("meta"):
            yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def _record_layers(
    made: dict[int, tuple[Any, tuple[Any, ...], dict[str, Any]]], nested: set[int]
) -> Iterator[None]:
    """Keep the arguments of every attention layer that is made meanwhile, the outermost class's."""
    create = type.__call__
    inner = 0

    def call(cls: Any, *positional: Any, **named: Any) -> Any:
        nonlocal inner
        inner += 1
        try:
            layer = create(cls, *positional, **named)
        finally:
            inner -= 1
        if inner:
            nested.add(id(layer))
        made[id(layer)] = (cls, positional, named)
        return layer

    class Recording(type(AttentionLayerBase)):  # type: ignore[misc]
        __call__ = call

    kinds = [kind for kind in _subclasses(AttentionLayerBase) if type(kind) is type(AttentionLayerBase)]
    for kind in kinds:
        kind.__class__ = Recording
    try:
        yield
    finally:
        for kind in kinds:
            kind.__class__ = type(AttentionLayerBase)


def _subclasses(cls: Any) -> list[Any]:
    return [subclass for sub in cls.__subclasses__() for subclass in (sub, *_subclasses(sub))]


def _move(layer: Any, swapped: Mapping[int, Any]) -> Any:
    moved = copy.copy(layer)
    moved.__dict__ = {key: swapped.get(id(value), value) for key, value in layer.__dict__.items()}
    return moved
