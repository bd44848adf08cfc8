"""What is said of a store before an engine relies on it."""

from dataclasses import replace
from pathlib import Path

from tests.shared.stores import ENOUGH_S, MAXMEMORY, Store
from tests.unit.connector.remote.cases import MIB

from kvtier_connector.core.remote.examine import Examination, examine
from kvtier_connector.core.remote.findings import Level
from kvtier_connector.core.remote.resp.store import RespStore

SHARE = "team/model"


def lines(examination: Examination, level: Level) -> str:
    return "\n".join(finding.line for finding in examination.findings if finding.level == level)


def test_a_store_that_will_do_is_measured_and_left_empty(store: Store) -> None:
    examination = examine(RespStore(store.access), SHARE, 200 * MIB, ENOUGH_S)
    assert {finding.level for finding in examination.findings} == {Level.GOOD}
    assert f"may read and write kvtier:{SHARE}:*" in lines(examination, Level.GOOD)
    assert "evicts by allkeys-lru" in lines(examination, Level.GOOD)
    assert "GB/s" in examination.findings[-1].line
    assert examination.round_trip_s > 0 < examination.read_bytes_per_s
    assert store.ask("DBSIZE") == 0


def test_a_store_without_bounds_or_with_too_narrow_ones(own_store: Store) -> None:
    too_much = lines(examine(RespStore(own_store.access), SHARE, 400 * MIB, ENOUGH_S), Level.BAD)
    assert too_much == (
        "a capacity of 400.0 MiB is more than the server's maxmemory, "
        f"{MAXMEMORY[:3]}.0 MiB; lower it or raise that"
    )
    own_store.ask("CONFIG", "SET", "maxmemory", "0")
    own_store.ask("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
    examination = examine(RespStore(own_store.access), SHARE, 400 * MIB, ENOUGH_S)
    assert "maxmemory is not set" in lines(examination, Level.BAD)
    assert "maxmemory-policy is volatile-lru" in lines(examination, Level.WARN)
    own_store.ask("CONFIG", "SET", "maxmemory", "20mb")
    own_store.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert "OOM" in lines(examine(RespStore(own_store.access), SHARE, MIB, ENOUGH_S), Level.BAD)


def test_rights_are_told_without_being_tried(own_store: Store, tmp_path: Path) -> None:
    reader = ("on", ">secret", f"~kvtier:{SHARE}:*", "+get", "+strlen", "+ping", "+info", "+acl|whoami")
    own_store.ask("ACL", "SETUSER", "reader", *reader, "+acl|dryrun")
    (tmp_path / "username").write_text("reader")
    (tmp_path / "password").write_text("secret")
    access = replace(own_store.access, credentials_path=str(tmp_path))
    denied = lines(examine(RespStore(access), SHARE, 200 * MIB, ENOUGH_S), Level.BAD)
    assert f"rights: SET, DEL of kvtier:{SHARE}:* denied" in denied
    assert "+set +del" in denied
    own_store.ask("ACL", "SETUSER", "reader", "-acl|dryrun")
    examination = examine(RespStore(access), SHARE, 200 * MIB, ENOUGH_S)
    assert "may not ask" in lines(examination, Level.NOTE)
    assert "NOPERM" in lines(examination, Level.BAD)


def test_a_store_that_is_not_there_is_one_line(own_store: Store) -> None:
    own_store.process.kill()
    examination = examine(RespStore(own_store.access), SHARE, MIB, ENOUGH_S)
    [finding] = examination.findings
    assert finding.line.startswith(f"{own_store.address}: Connection refused; see that a server serves there")
    assert finding.setting == "remote_url"


def test_a_look_moves_nothing(own_store: Store) -> None:
    own_store.ask("CONFIG", "SET", "maxmemory", "20mb")
    own_store.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    examination = examine(RespStore(own_store.access), SHARE, MIB, ENOUGH_S, moving=False)
    assert not lines(examination, Level.BAD)
    assert examination.read_bytes_per_s == 0
    assert "cmdstat_set:" not in str(own_store.ask("INFO", "commandstats"))
