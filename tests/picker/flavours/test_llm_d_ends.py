"""How llm-d-router itself ends, and who follows it, with the arguments and rights that kvtier renders."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.harness.providers.provider import Cluster
from tests.picker.flavours.inputs import EXAMPLE
from tests.picker.flavours.llm_d_itself import ENGINES, blocks, entries_are, start_of, until
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.llm_d import EACH_VERSION, LlmDStart, needs, rendered, running_llm_d
from tests.picker.harness.pool import Pool, made_pool


@pytest.fixture(scope="module")
def pool(control_plane: Cluster, fleet: Fleet) -> Iterator[Pool]:
    with made_pool(control_plane, "llm-d-ends", fleet.port, fleet.ips) as made:
        yield made


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@needs("0.10")
def test_a_call_under_way_may_end(pool: Pool, tmp_path: Path) -> None:
    with running_llm_d(start_of("0.10"), pool, ENGINES, tmp_path) as picker:
        with picker.asked("once upon a time"):
            picker.process.send(signal.SIGTERM)
            picker.process.wait_until_log("Drain window elapsed")
        assert picker.process.wait() == 0


@pytest.mark.parametrize(
    "end",
    [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.long)],
    ids=lambda each: each.name,
)
@EACH_VERSION
def test_a_standby_takes_over_with_an_empty_index(
    version: str, end: signal.Signals, control_plane: Cluster, fleet: Fleet, tmp_path: Path
) -> None:
    arguments, config = rendered(version, engine={"kvCacheMemory": "20Gi"}, router={"replicas": 2})
    start = LlmDStart(version, config, arguments, health="liveness")
    name = f"standby-{version.replace('.', '-')}-{end.name.lower()}"
    with (
        made_pool(control_plane, name, fleet.port, fleet.ips, elect=True) as pool,
        running_llm_d(start, pool, 0, made(tmp_path / "one")) as one,
    ):
        until(lambda: one.is_serving("readiness"))
        with running_llm_d(start, pool, 0, made(tmp_path / "other")) as other:
            one.pick(blocks(4, "known"))
            entries_are(one, 4, 4)
            assert not other.is_serving("readiness")
            one.process.send(end)
            until(lambda: other.is_serving("readiness"))
            entries_are(other, 0, 0)
            assert other.pick("once upon a time").engine


@needs("0.10")
def test_a_leader_serves_on_while_the_next_one_takes_over(
    control_plane: Cluster, fleet: Fleet, tmp_path: Path
) -> None:
    arguments, config = rendered("0.10", router={"replicas": 2})
    start = LlmDStart("0.10", config, arguments, health="liveness")
    with (
        made_pool(control_plane, "leaders", fleet.port, fleet.ips, elect=True) as pool,
        running_llm_d(start, pool, 0, made(tmp_path / "one")) as one,
    ):
        until(lambda: one.is_serving("readiness"))
        with running_llm_d(start, pool, 0, made(tmp_path / "other")) as other:
            with one.asked("once upon a time"):
                one.process.send(signal.SIGTERM)
                until(lambda: other.is_serving("readiness"))
                assert not one.is_serving("readiness")
                assert one.pick("and once more").engine
            assert one.process.wait() == 0


@needs("0.9")
def test_0_9_has_no_drain_timeout(pool: Pool, tmp_path: Path) -> None:
    start = start_of("0.9", EXAMPLE, "--drain-timeout=0s")
    with (
        pytest.raises(RuntimeError, match="unknown flag: --drain-timeout"),
        running_llm_d(start, pool, ENGINES, tmp_path),
    ):
        pass
