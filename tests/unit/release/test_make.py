from pathlib import Path

import pytest

from kvtier_release import make
from kvtier_release.commands import ReleaseError


@pytest.mark.parametrize(
    "version", ["1.0", "0.2.0rc1", "0.2.0+local", "v0.2.0", "0.2.0 ", "0.02.0", "latest", ""]
)
def test_a_version_that_no_chart_takes_is_refused_first(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "KVTIER_VERSION", version)
    with pytest.raises(ReleaseError, match=r"write MAJOR\.MINOR\.PATCH"):
        make.make_release(tmp_path, tmp_path / "dist", make.Wanted("registry.example", ["operator"]))
    assert not (tmp_path / "dist").exists()
