"""Bad settings of our disk tier behind vLLM's own CPU tier stop the start in one line."""

import os
from pathlib import Path

import pytest
from tests.engine.connector.secondary.tiering import Start, Tiering, config, start

from kvtier_connector.errors import ConnectorError, FolderInUseError, SettingError

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
__all__ = ["start"]  # a fixture


BAD: dict[str, tuple[dict[str, object], str]] = {
    "unknown": ({"root_dir": "/x"}, r"root_dir: unknown setting; known are capacity_bytes, direct_io, "),
    "relative": ({"path": "here"}, r"path: got 'here', must be the absolute path of a folder$"),
    "text": ({"capacity_bytes": "4Gi"}, r"capacity_bytes: got '4Gi', must be a whole number, 1 or more$"),
    "true": ({"capacity_bytes": True}, r"capacity_bytes: got True, must be"),
    "small": ({"capacity_bytes": 1 << 20}, r"capacity_bytes: 1.0 MiB do not hold one chunk of 0.0 MiB"),
    "large": ({"capacity_bytes": 1 << 45}, r"capacity_bytes: .* do not fit .* are free"),
    "wear": ({"write_bytes_per_hour": -1}, r"write_bytes_per_hour: got -1, must be a whole number, 0 or"),
    "never": ({"timeout_s": 0}, r"timeout_s: got 0, must be seconds, more than 0$"),
    "for ever": ({"timeout_s": float("inf")}, r"timeout_s: got inf, must be seconds"),
    "switch": ({"direct_io": "yes"}, r"direct_io: got 'yes', must be true or false$"),
    "name": ({"namespace": 5}, r"namespace: got 5, must be a text$"),
    "weights": ({"namespace": ""}, r"namespace: missing; the weights of m cannot be told from others"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_stop_the_start_in_one_line(tmp_path: Path, case: str) -> None:
    settings, message = BAD[case]
    with pytest.raises(ConnectorError, match=rf"^secondary_tiers\[0\]\.{message}") as caught:
        Tiering.start(config(tmp_path / "disk", **settings))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("lacks", ["path", "capacity_bytes"])
def test_what_is_missing_is_named_with_its_entry(tmp_path: Path, lacks: str) -> None:
    settings = config(tmp_path)
    example = {"type": "example"}
    settings.extra_config["secondary_tiers"].insert(0, example)
    del settings.extra_config["secondary_tiers"][1][lacks]
    with pytest.raises(SettingError, match=rf"^secondary_tiers\[1\]\.{lacks}: missing; a disk tier needs"):
        Tiering.start(settings)


def test_a_file_where_the_folder_should_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "disk").touch()
    told = tmp_path / "termination-log"
    told.touch()
    monkeypatch.setattr("kvtier_connector.complete._TERMINATION_LOG", told)
    with pytest.raises(
        SettingError, match=r"^secondary_tiers\[0\]\.path: .*disk.* is a file; name a folder$"
    ) as caught:
        Tiering.start(config(tmp_path / "disk"))
    assert told.read_text() == f"{caught.value}\n"


def test_a_folder_that_another_engine_has(start: Start, tmp_path: Path) -> None:
    start()
    with pytest.raises(
        FolderInUseError, match=r"^secondary_tiers\[0\]\.path: .* is in use by engine m \(proc"
    ):
        Tiering.start(config(tmp_path / "disk"))


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    from kvtier_connector.core.disk.files.folder import LockedFolder  # noqa: PLC0415 - as above
    from kvtier_connector.vllm.secondary.settings import rename_errors  # noqa: PLC0415 - takes seconds

    (tmp_path / "closed").mkdir(mode=0o500)
    user = os.geteuid()
    if user == 0:  # who may write everything
        os.seteuid(65534)
    try:
        with (
            pytest.raises(
                SettingError, match=r"^secondary_tiers\[0\]\.path: no permission to write .*closed"
            ),
            rename_errors("secondary_tiers[0]"),
        ):
            LockedFolder.take(tmp_path / "closed" / "disk", "a")
    finally:
        os.seteuid(user)
