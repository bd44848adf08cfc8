"""`kvtier bench remote` before a real server."""

import json
from pathlib import Path

from click.testing import CliRunner
from tests.shared.stores import Store

from kvtier_connector.bench.remote import remote


def test_a_store_that_will_do_and_one_that_is_too_small(store: Store, tmp_path: Path) -> None:
    url = f"redis://{store.address}"
    figures = tmp_path / "figures.json"
    ran = CliRunner().invoke(remote, ["--url", url, "--out", str(figures)])
    assert ran.exit_code == 0, ran.output
    assert "may read and write kvtier:bench:*" in ran.output
    assert json.loads(figures.read_text())["read_bytes_per_s"] > 0
    ran = CliRunner().invoke(remote, ["--url", url, "--capacity-mib", "1000"])
    assert ran.exit_code == 3
    assert "is more than the server's maxmemory" in ran.output


def test_what_is_no_url() -> None:
    ran = CliRunner().invoke(remote, ["--url", "http://cache"])
    assert ran.exit_code == 2
    assert "--url" in ran.output
    assert "must begin with redis://" in ran.output


def test_what_a_store_has_no_use_for(tmp_path: Path) -> None:
    ran = CliRunner().invoke(remote, ["--url", "mooncake://master", "--credentials", str(tmp_path)])
    assert ran.exit_code == 2
    assert "a Mooncake store has neither credentials nor TLS" in " ".join(ran.output.split())
