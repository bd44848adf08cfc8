"""Checks of the remote tier."""

import pytest
from tests.cases.checks import PASS, REJECT, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.remote import remote_engine


def test_no_remote_tier_no_word() -> None:
    says(verdict(remote_engine, resource()), PASS, "NoRemoteTier")


@pytest.mark.parametrize("url", ["redis://cache:6379", "valkeys://a:6379,b:6379"])
def test_kvtier_speaks_redis(url: str) -> None:
    tiers = {"remote": {"capacity": "1Ti", "url": url}}
    says(verdict(remote_engine, resource(tiers=tiers)), PASS, "Passed")


def test_a_store_that_no_client_speaks_to() -> None:
    tiers = {"remote": {"capacity": "1Ti", "url": "s3://bucket/kv"}}
    says(verdict(remote_engine, resource(tiers=tiers)), REJECT, "NoClientForStore", "KVTier", "s3://")


def test_a_managed_store_is_refused() -> None:
    tiers = {"remote": {"capacity": "1Ti", "managed": {}}}
    says(verdict(remote_engine, resource(tiers=tiers)), REJECT, "NoManagedStore", "url")
