"""Each attack with a neighbour beside it, who must not notice, in a picker as kvtier renders it.

How much slower a neighbour is `make bench-attacks` prints, a bare grpc.aio server beside the picker.
"""

import time
from pathlib import Path
from typing import Final

import pytest
from tests.picker.attacks.attackers.tally import cut_off, faults
from tests.picker.attacks.catalogue import ATTACKS
from tests.picker.attacks.neighbour import DEADLINE_S
from tests.picker.attacks.stage import USUALLY_S, Row, attack_server, victim_of

LOG_LINES: Final = 40
"""An attacker writes no log: a line a kind of trouble every ten seconds, and some of its own."""
PATIENT_S: Final = 60.0
"""A neighbour who asks for no speed but for an answer."""
SAMPLED: Final = [name for name, attack in ATTACKS.items() if attack.sampled]
_SPUN_S: Final = 0.25


def crowding() -> float:
    """How many times longer work takes here now than on a core of its own."""
    began_s, worked_s = time.monotonic(), time.thread_time()
    while time.thread_time() - worked_s < _SPUN_S:
        pass
    return (time.monotonic() - began_s) / _SPUN_S


def under(name: str, folder: Path, usually_s: float, deadline_s: float) -> Row:
    with victim_of(ATTACKS[name], folder) as victim:
        return attack_server(name, ATTACKS[name], victim, usually_s, deadline_s)


def check_unharmed(name: str, row: Row) -> None:
    """Nobody else is refused or waits without end, and the picker keeps to its bounds."""
    assert row.tally.total(), "an attacker that did nothing tests nothing"
    # where another server's neighbour waits as well, the machine is what stands still
    assert row.during.timeouts <= row.elsewhere.timeouts, row.during.failed
    assert row.during.failed.total() <= row.elsewhere.failed.total(), row.during.failed
    assert row.after.took_s
    assert not row.after.failed
    assert not row.restarted, row.alive
    assert row.peak_bytes <= row.limit_bytes
    assert not faults(row.tally), row.tally
    assert len(row.log) <= LOG_LINES, row.log
    assert not [line for line in row.log if "Traceback" in line], row.log
    if ATTACKS[name].is_cut_off:
        assert cut_off(row.tally), row.tally


@pytest.mark.parametrize("name", SAMPLED)
def test_an_attack_harms_the_attacker_alone(name: str, tmp_path: Path) -> None:
    check_unharmed(name, under(name, tmp_path, 0.5, PATIENT_S))


@pytest.mark.long
@pytest.mark.parametrize("name", ATTACKS)
def test_a_neighbour_is_answered_before_its_deadline(name: str, tmp_path: Path) -> None:
    check_unharmed(name, under(name, tmp_path, USUALLY_S, DEADLINE_S * crowding()))
