"""What each side gives its engine: what the planner gives a resource of that backend, and the same memory."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_connector.bench import comparison, sides
from kvtier_connector.bench.choices import EVERY_SIDE
from kvtier_connector.bench.comparison import Comparison
from kvtier_connector.bench.measure import Run
from kvtier_connector.bench.sides import MAKERS, SideEngine
from kvtier_connector.bench.vllm_arguments import ServeOptions
from kvtier_connector.config import GIB, MIB, ConnectorConfig, Policy, kv_transfer_config
from kvtier_connector.errors import ConnectorError
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan

FILES, SOCKETS = Path("/files"), Path("/sockets")
TIERS = {"cpu": {"capacity": "5Gi"}}
WITH_DISK = {**TIERS, "disk": {"capacity": "20Gi", "volume": {"emptyDir": {}}}}


def planned(backend: str, tiers: dict[str, Any]) -> Plan:
    return make_plan(resource("Qwen/Qwen3-8B", backend=backend, tiers=tiers), Observed())


def transfer_of(plan: Plan) -> dict[str, Any]:
    words = list(plan.engine.args)
    config: dict[str, Any] = json.loads(words[words.index("--kv-transfer-config") + 1])
    return config


@pytest.fixture
def as_planned(model: Path) -> Comparison:
    """Sides of what `kvtier plan` makes of a resource by default."""
    arguments = planned("KVTier", TIERS).engine.args[1:]
    return Comparison(model=model, serve_options=ServeOptions.read(arguments))


def made(comparison: Comparison, side: str) -> SideEngine:
    return comparison.side(side, 1, FILES, SOCKETS)


def extra(side: SideEngine) -> dict[str, Any]:
    assert side.transfer is not None
    return dict(side.transfer["kv_connector_extra_config"])


def test_every_side_has_a_title_and_a_maker() -> None:
    assert {*MAKERS} == {*EVERY_SIDE}


def test_no_tier_is_no_connector(as_planned: Comparison) -> None:
    assert made(as_planned, "none").arguments() == {"kv_transfer_config": None}


def test_kvtier_is_as_planned_with_its_socket_in_a_folder_of_its_own(as_planned: Comparison) -> None:
    plan = transfer_of(planned("KVTier", TIERS))
    plan["kv_connector_extra_config"]["control_path"] = "/sockets/control"
    assert made(as_planned, "kvtier").arguments() == {"kv_transfer_config": plan}


def test_kvtier_s_other_sides_differ_in_one_thing(as_planned: Comparison) -> None:
    own = made(as_planned, "kvtier")
    assert extra(made(as_planned, "kvtier-whole-loads")) == {**extra(own), "layered_loads": False}
    sync = made(as_planned, "kvtier-sync")
    assert (sync.transfer, sync.settings) == (own.transfer, {"async_scheduling": False})


def test_vllm_s_own_are_backend_native_s(as_planned: Comparison) -> None:
    assert made(as_planned, "vllm").transfer == transfer_of(planned("Native", TIERS))
    plan = transfer_of(planned("Native", WITH_DISK))
    plan["kv_connector_extra_config"]["secondary_tiers"][0]["root_dir"] = "/files/disk"
    assert made(as_planned, "vllm-disk").transfer == plan


def test_lmcache_is_backend_lmcache_s(as_planned: Comparison) -> None:
    lmcache, plan = made(as_planned, "lmcache"), planned("LMCache", TIERS)
    assert lmcache.transfer == transfer_of(plan)
    assert plan.engine.env.items() >= lmcache.variables.items()
    sizes = {name for name in plan.engine.env if name.startswith("LMCACHE_")}
    assert sizes - {*lmcache.variables} == {"LMCACHE_CONFIG_FILE"}, "a file with the same values"


def test_without_a_given_tier_all_hold_so_many_tokens(model: Path) -> None:
    capacity_bytes = 1407 * MIB  # 10,000 x 147,456 bytes are 1,406.25 MiB
    both = [Comparison(model=model).side(name, 10_000, FILES, SOCKETS) for name in ("vllm", "kvtier")]
    assert extra(both[0]) == {"cpu_bytes_to_use": capacity_bytes}
    chunks_of_64 = ConnectorConfig(cpu_capacity_bytes=capacity_bytes, blocks_per_chunk=4)
    assert both[1].transfer == kv_transfer_config(chunks_of_64)


def test_a_given_tier_s_size_is_everybody_s(model: Path) -> None:
    transfer = kv_transfer_config(ConnectorConfig(cpu_capacity_bytes=5 * GIB, hugepages=Policy.NEVER))
    given = Comparison(model=model, serve_options=ServeOptions(transfer=transfer, ranks=2))
    assert made(given, "kvtier").transfer == transfer
    assert extra(made(given, "vllm")) == {"cpu_bytes_to_use": 5 * GIB}
    assert made(given, "lmcache").variables["LMCACHE_MAX_LOCAL_CPU_SIZE"] == "2.5"


def test_a_side_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, run: Run, model: Path) -> None:
    monkeypatch.setattr(sides, "find_spec", lambda _name: None)
    with pytest.raises(ConnectorError, match="--sides: lmcache: lmcache is not installed"):
        Comparison.of(replace(run, model=model, sides=("none", "lmcache"), gpu="H100"))


def test_a_life_s_folders_go_with_it(
    monkeypatch: pytest.MonkeyPatch, as_planned: Comparison, tmp_path: Path
) -> None:
    disks = tmp_path / "disks"
    disks.mkdir()
    seen: list[dict[str, Any]] = []

    @contextmanager
    def engine(settings: dict[str, Any], **_: object) -> Iterator[None]:
        seen.append(settings)
        assert len(list(disks.iterdir())) == 1
        yield

    monkeypatch.setattr(comparison, "bench_engine", engine)
    life = replace(as_planned, disks=disks).life
    with life("vllm-disk", {"seed": 1}, tier_tokens=1, log=tmp_path / "log"):
        (given,) = seen
    assert given["seed"] == 1
    (disk,) = given["kv_transfer_config"]["kv_connector_extra_config"]["secondary_tiers"]
    assert disk["root_dir"].startswith(str(disks))
    assert not list(disks.iterdir())
