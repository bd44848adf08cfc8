import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/unit/operator/golden/output anew"
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether to write the outputs anew; False when the option is not there (a run of all tests)."""
    return bool(request.config.getoption("--update-golden", default=False))
