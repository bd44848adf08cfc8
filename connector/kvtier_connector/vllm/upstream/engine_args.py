"""How an engine's configuration is made of its arguments, and how that is changed for an engine of others.

Source: vLLM 0.32 and 0.33, engine/arg_utils.py, `EngineArgs.create_engine_config`.
"""

import copy
import multiprocessing
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, Final

from vllm.config import KVTransferConfig, ParallelConfig, VllmConfig
from vllm.engine.arg_utils import EngineArgs

from kvtier_connector.attach.decisions import EngineFacts
from kvtier_connector.config import CONNECTOR_MODULE

Configure = Callable[..., VllmConfig]
_MARK: Final = "__kvtier__"
_RAY: Final = "ray"
_NATIVE: Final = "of --kv-offloading-size"
_SUPERVISED: Final = "APIServer_DPRank_"
"""How entrypoints/launchers/dp_supervisor.py begins the names of the servers that it starts in one pod."""


class ConfiguredEngine:
    """An engine's configuration with our connector."""

    def __init__(self, config: VllmConfig) -> None:
        self.config = config

    @property
    def facts(self) -> EngineFacts:
        """What decides whether it can have the tier."""
        parallel = self.config.parallel_config
        return EngineFacts(
            connector=_connector(self.config.kv_transfer_config),
            prefix_caching=bool(self.config.cache_config.enable_prefix_caching),
            pipeline_ranks=parallel.pipeline_parallel_size,
            nodes=parallel.nnodes_within_dp,
            executor=_executor(parallel),
            keeps_kv=self._keeps_kv(),
            local_engines=max(parallel.data_parallel_size_local, 1),  # a head without engines has 0
        )

    def _keeps_kv(self) -> bool:
        """Whether vLLM's scheduler takes a connector, and finds KV blocks for it."""
        model = self.config.model_config
        return not model.is_encoder_decoder and model.attn_type != "encoder_only"

    def set_extra_config(self, extra: Mapping[str, Any]) -> None:
        """Give the connector other settings: some are known only when the configuration is."""
        self.config.kv_transfer_config.kv_connector_extra_config = dict(extra)


class StartingEngine:
    """An engine of which there are the arguments only."""

    def __init__(self, arguments: EngineArgs, configure: Configure) -> None:
        self._arguments = arguments
        self._tried = arguments
        self._configure = configure

    @property
    def facts(self) -> EngineFacts:
        """What decides whether it can have the tier, as far as the arguments say it."""
        arguments = self._arguments
        offloads = arguments.kv_offloading_size is not None
        return EngineFacts(
            connector=_connector(arguments.kv_transfer_config) or (_NATIVE if offloads else ""),
            prefix_caching=arguments.enable_prefix_caching is not False,
            pipeline_ranks=arguments.pipeline_parallel_size,
            nodes=1,  # of which some may be other engines'
            executor=_executor(arguments),
            is_one_of_several=multiprocessing.current_process().name.startswith(_SUPERVISED),
        )

    def configure(self, transfer: Mapping[str, Any]) -> ConfiguredEngine:
        """Make the configuration with a connector, of a copy of the arguments; raises whatever vLLM raises.

        vLLM writes into the arguments what it finds out, and takes that for the owner's word the next time.
        """
        import_module(CONNECTOR_MODULE)  # as the engine's processes will
        self._tried = copy.deepcopy(self._arguments)
        self._tried.kv_transfer_config = KVTransferConfig(**transfer)
        return ConfiguredEngine(self._configure(self._tried))

    def keep(self) -> None:
        """Write into the owner's arguments what vLLM has found out, as it would have without a connector."""
        owners = self._arguments.kv_transfer_config
        vars(self._arguments).update(vars(self._tried), kv_transfer_config=owners)


def wrap_engine_config(attach: Callable[[StartingEngine], VllmConfig | None]) -> None:
    """Have each engine of this process attached, or not where None is returned; the first call counts."""
    original = EngineArgs.create_engine_config
    if hasattr(original, _MARK):
        return

    @wraps(original)
    def create_engine_config(self: EngineArgs, *args: Any, **kwargs: Any) -> VllmConfig:  # noqa: ANN401 - vLLM's own
        engine = StartingEngine(self, lambda arguments: original(arguments, *args, **kwargs))
        config = attach(engine)
        if config is None:
            return original(self, *args, **kwargs)
        engine.keep()
        return config

    setattr(create_engine_config, _MARK, True)
    EngineArgs.create_engine_config = create_engine_config


def _executor(settings: EngineArgs | ParallelConfig) -> str:
    """Return the name of what starts an engine's ranks, a class's where it is one; of Ray's engines, Ray."""
    backend = settings.distributed_executor_backend
    if settings.data_parallel_backend == _RAY:
        return _RAY
    return f"{backend.__module__}.{backend.__qualname__}" if isinstance(backend, type) else backend or ""


def _connector(transfer: KVTransferConfig | Mapping[str, Any] | None) -> str:
    """Return the name of a connector; an empty configuration has none."""
    if isinstance(transfer, Mapping):
        return str(transfer.get("kv_connector") or "")
    return str(getattr(transfer, "kv_connector", None) or "")
