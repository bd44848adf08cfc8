from pathlib import Path

import pytest
from tests.unit.additions.copied import Copied, copied


@pytest.fixture
def copy(tmp_path: Path) -> Copied:
    return copied(tmp_path)
