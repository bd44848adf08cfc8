"""Addresses of the Internet, and others in whatever clothes."""

import pytest

from kvtier_operator.reconcile.observe.huggingface import is_public


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_of_the_internet(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255",  # noqa: S104 - nothing listens
        "::", "::1", "fe80::1", "fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:169.254.169.254",
        "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1", "::169.254.169.254",
    ],
)  # fmt: skip
def test_of_somewhere_else(address: str) -> None:
    assert not is_public(address)
