"""Intervals of few resamples: nothing here looks at them, and each takes 10,000."""

import pytest

from kvtier_connector.bench import workloads


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "_RESAMPLES", 50)
