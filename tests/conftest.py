"""What holds for all tests: settings, what several workers share out among them, lines of progress."""

import gc
import sys
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from tests.cluster.harness.programs.tools import Say, find_in_assets
from tests.workers import TogetherByFile, place

# On a machine that others use, how long an example took says nothing.
# Derandomized, so that a run here and one in CI, where Hypothesis does so by itself, ask the same.
settings.register_profile(
    "kvtier",
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Others every time, and many: pytest --hypothesis-profile=search
settings.register_profile(
    "search", settings.get_profile("kvtier"), max_examples=1000, derandomize=False, print_blob=True
)
settings.load_profile("kvtier")


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> TogetherByFile:
    """Share the tests out, where pytest-xdist's -n asks for several workers."""
    return TogetherByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays: no garbage is looked for in it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: place(item.nodeid))
    lacking = [
        item
        for item in items
        if any(find_in_assets(mark.args[0]) is None for mark in item.iter_markers("program"))
    ]
    if lacking:
        items[:] = [item for item in items if item not in set(lacking)]
        lacking[0].config.hook.pytest_deselected(items=lacking)


@pytest.fixture(scope="session")
def say(request: pytest.FixtureRequest) -> Say:
    """Tells whoever watches the tests what takes long, from any worker."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def line(text: str) -> None:
        with capture.global_and_fixture_disabled():
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    return line
