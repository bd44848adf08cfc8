import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.unit.connector.disk.io.cases import NAMES, Case, case_of


@pytest.fixture(params=NAMES)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    with ExitStack() as stack:
        yield case_of(request.param, stack)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def pipes() -> Iterator[list[tuple[int, int]]]:
    made = [os.pipe() for _ in range(3)]
    yield made
    for pipe in made:
        for descriptor in pipe:
            os.close(descriptor)
