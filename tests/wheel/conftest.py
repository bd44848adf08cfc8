"""kvtier's wheel, and environments that have it alone or with one of its extras."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests.wheel.environment import Environment, build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def with_extra(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Environment]:
    """Makes an environment with the wheel and then an extra, once; none for an empty name."""

    @cache
    def made(extra: str) -> Environment:
        environment = Environment.create(tmp_path_factory.mktemp(extra or "base"))
        environment.install(f"kvtier @ {wheel.as_uri()}")
        if extra:
            environment.install(f"kvtier[{extra}]")
        return environment

    return made


@pytest.fixture(scope="session")
def base(with_extra: Callable[[str], Environment]) -> Environment:
    """What `pip install` of the wheel brings."""
    return with_extra("")
