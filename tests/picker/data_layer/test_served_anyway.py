"""A picker whose pods' metrics are none: it goes on picking them, and says so to those who watch it."""

from pathlib import Path

from tests.picker.flavours.inputs import EXAMPLE
from tests.picker.fuzz.conftest import Target
from tests.picker.harness.client import get
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.own import OwnStart, running_own

from kvtier_scorer.config.flavors import picker_config


def test_pods_without_metrics_are_picked_and_the_operator_is_told(fleet: Fleet, tmp_path: Path) -> None:
    start = OwnStart(picker_config("builtin", EXAMPLE).text)
    with running_own(start, fleet.pods, tmp_path) as own:
        target = Target(own, fleet)
        target.check_good_request()
        engines = list(fleet.engines.values())

        def failing() -> bool:
            return 'kvtier_picker_scrapes_failing{reason="not metrics"} 3.0' in metrics()

        def metrics() -> str:
            return get(f"{own.http}/metrics").body.decode()

        try:
            for engine in engines:
                engine.metrics = b"<html>It works!</html>"
            own.process.wait_until(failing)
            own.process.wait_until(lambda: "kvtier_picker_pods_stale 3.0" in metrics())
            assert "kvtier_picker_pods 3.0" in metrics()
            target.check_good_request()
            for engine in engines:
                assert target.log.count(f"pod {engine.address}: /metrics is not an engine's") == 1
        finally:
            for engine in engines:
                engine.metrics = None
        own.process.wait_until(lambda: "scrapes_failing{" not in metrics())
        own.process.wait_until(lambda: "kvtier_picker_pods_stale 0.0" in metrics())
        assert "Traceback" not in target.log
