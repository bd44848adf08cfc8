"""A Secret's entries as keys: what is one, and what is said of the others."""

import json
import subprocess
import sys
from pathlib import Path

from kvtier_scorer.picker.api_keys import ApiKeys, envoy_filter, read_keys

KEY = "sk-0123456789abcdef"


def test_what_is_no_key_is_left_out_and_named_but_not_shown(tmp_path: Path) -> None:
    entries = {"alice": f"{KEY}\n", "bob": KEY, "short": "secret", "spaced": f"{KEY} {KEY}", "odd": f"{KEY}é"}
    for name, text in entries.items():
        (tmp_path / name).write_text(text)
    keys = read_keys(tmp_path)
    assert keys.by_client == {"alice": KEY}
    assert [fault.split()[0] for fault in keys.faults] == ["bob", "odd", "short", "spaced"]
    assert KEY not in repr(keys)
    [resource] = envoy_filter(keys, passes_on=True)["resources"]
    assert resource["typed_config"]["forwarding"]["hide_credentials"] is False


def test_a_start_without_a_key_ends_those_of_an_earlier_one(tmp_path: Path) -> None:
    (folder := tmp_path / "secret").mkdir()
    file = tmp_path / "keys.json"
    command = [sys.executable, "-m", "kvtier_scorer.picker", "api-keys"]
    command += ["--folder", str(folder), "--file", str(file)]

    def start() -> str:
        ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        assert ended.returncode == 1
        return ended.stderr.splitlines()[-1]

    assert "no API key: the Secret is not there" in start()
    # Envoy waits for the file
    assert not file.exists()
    file.write_text(json.dumps(envoy_filter(ApiKeys({"alice": KEY}, ()), passes_on=False)))
    assert "no API key: the Secret is not there" in start()
    assert json.loads(file.read_text()) == envoy_filter(ApiKeys({}, ()), passes_on=False)
