"""Ports for programs that are started later: the kernel gives them to nobody else meanwhile."""

import errno
import socket

import pytest

from kvtier_operator.runtime import process
from kvtier_operator.runtime.process import LOOPBACK, free_ports


def test_they_differ_and_the_program_that_they_are_for_gets_them() -> None:
    found = free_ports(20, LOOPBACK)
    assert len(set(found)) == 20
    for port in found:
        with socket.create_server((LOOPBACK, port)) as server:
            socket.create_connection((LOOPBACK, port)).close()
            server.accept()[0].close()


def test_they_stay_taken_for_who_does_not_mind_which() -> None:
    [port] = free_ports(1, LOOPBACK)
    with socket.socket() as other, pytest.raises(OSError, match="in use") as raised:
        other.bind((LOOPBACK, port))
    assert raised.value.errno == errno.EADDRINUSE
    assert port not in free_ports(50, LOOPBACK)


def test_a_port_can_be_taken_again_by_a_program_that_is_started_again() -> None:
    [port] = free_ports(1, LOOPBACK)
    for _ in range(2):
        with socket.create_server((LOOPBACK, port)) as server:
            socket.create_connection((LOOPBACK, port)).close()
            server.accept()[0].close()


def test_only_so_many_are_kept() -> None:
    free_ports(2 * process._MOST_HELD, LOOPBACK)
    assert len(process._held) == process._MOST_HELD
