"""The pickers that are compared, each started on a core of its own, all looking at pods at the same pace."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.provider import Cluster
from tests.picker.harness.cores import started_on
from tests.picker.harness.fleet import FleetProcess
from tests.picker.harness.pickers.gaie import Start, running_gaie
from tests.picker.harness.pickers.own import OwnStart, running_own
from tests.picker.harness.pool import made_pool

from kvtier_common.tier import Tier
from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import PickerInput, ScorerWeights, TierTokens

GAIE_VERSION: Final = "1.5"
# Qwen3-32B in bf16 with 100 GiB of CPU memory, 2:2:1:1; every picker looks at the whole prompt.
_WEIGHTS: Final = ScorerWeights({"queue": 2, "kv_cache_utilization": 2, "gpu_prefix": 1, "cpu_prefix": 1})
_TOKENS: Final = TierTokens({Tier.GPU: 120_000, Tier.CPU: 409_600})
# Looks at pods' metrics a second that the stand-in engines can answer beside the load.
_SCRAPES_PER_S: Final = 500
# What both pickers do unless they are told otherwise.
_SHORTEST_INTERVAL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a picker is started.

    Attributes:
        fleet: Its pods.
        cluster: Has an API server for pickers that need one.
        cores: It runs on these.
        folder: For its files.
        say: Takes lines about what takes long.
    """

    fleet: FleetProcess
    cluster: Cluster
    cores: frozenset[int]
    folder: Path
    say: Say

    @property
    def scrape_interval_s(self) -> float:
        """Between two looks at a pod's metrics: as short as the stand-in engines can answer."""
        return max(_SHORTEST_INTERVAL_S, len(self.fleet.ips) / _SCRAPES_PER_S)


@dataclass(frozen=True, slots=True)
class Started:
    """A picker that is ready.

    Attributes:
        address: Of its ext_proc service.
        pid: Its process.
    """

    address: tuple[str, int]
    pid: int


Picker = TypeVar("Picker")


@contextmanager
def _on(cores: frozenset[int], running: AbstractContextManager[Picker]) -> Iterator[Picker]:
    """Enters a context whose process runs on these cores; what is started within it does not."""
    with ExitStack() as stack:
        with started_on(cores):
            picker = stack.enter_context(running)
        yield picker


@contextmanager
def _kvtier(setting: Setting) -> Iterator[Started]:
    config = picker_config("builtin", PickerInput(_WEIGHTS, _TOKENS, engine_block_tokens=16)).text
    start = OwnStart(config, setting.scrape_interval_s)
    running = running_own(start, setting.fleet.pods, setting.folder)
    with _on(setting.cores, running) as picker:
        yield Started(picker.address, picker.process.pid)


@contextmanager
def _gaie(setting: Setting) -> Iterator[Started]:
    asked = PickerInput(_WEIGHTS, _TOKENS, engine_block_tokens=16, version=GAIE_VERSION)
    start = Start(
        GAIE_VERSION,
        picker_config("gaie", asked).text,
        scrape_interval_s=setting.scrape_interval_s,
        environment={"GOMAXPROCS": "1"},
    )
    ips = setting.fleet.ips
    with made_pool(setting.cluster, f"bench-{len(ips)}", setting.fleet.port, ips) as pool:
        running = running_gaie(start, pool, len(ips), setting.folder, setting.say)
        with _on(setting.cores, running) as picker:
            yield Started(picker.address, picker.process.pid)


SIDES: Final[Mapping[str, Callable[[Setting], AbstractContextManager[Started]]]] = {
    "kvtier": _kvtier,
    "gaie": _gaie,
}
"""By name in the figures."""
