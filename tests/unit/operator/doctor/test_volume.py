"""The doctor's probe of a volume: writes, and leaves nothing, whatever others have put there."""

import os
from pathlib import Path

import pytest

from kvtier_operator.doctor.volume import probe_volume
from kvtier_operator.planning.pod.demands import VolumeDemand


def demand(path: Path) -> VolumeDemand:
    return VolumeDemand(path=str(path), bytes=4096, direct_io=False)


def test_nothing_is_left(tmp_path: Path) -> None:
    found = probe_volume(demand(tmp_path))
    assert (found.refusal, list(tmp_path.iterdir())) == ("", [])
    assert found.free_bytes > 0


def test_a_file_of_the_process_s_number_does_not_keep_it_from_writing(tmp_path: Path) -> None:
    (tmp_path / f".kvtier-doctor-{os.getpid()}").touch()
    assert probe_volume(demand(tmp_path)).refusal == ""


@pytest.mark.parametrize("name", ["none", "file"])
def test_what_is_no_folder_is_refused_in_the_kernel_s_words(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    words = {"none": "No such file or directory", "file": "Not a directory"}
    assert probe_volume(demand(tmp_path / name)).refusal == words[name]
