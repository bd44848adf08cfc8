from pathlib import Path

import pytest
from tests.unit.additions.copied import Copied, copy_sources


@pytest.fixture
def copy(tmp_path: Path) -> Copied:
    return copy_sources(tmp_path)
