"""A store's password is made once, of random bits, by a request that leaves one that is there alone."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.operator.reconcile.objects import UID, plan_objects

from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes.answers import ConflictError, ForbiddenError
from kvtier_common.kubernetes.client import Request
from kvtier_operator.planning.base.names import Component
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.apply.store_secret import make_store_secret
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.facts.cached_plan import owner_reference

MANAGED: dict[str, object] = {"spec.tiers.remote": {"capacity": "4Gi", "managed": {}}}


class _Api:
    def __init__(self, error: KvtierError | None = None) -> None:
        self.error = error
        self.requests: list[Request] = []

    async def request(self, request: Request) -> bytes:
        self.requests.append(request)
        if self.error:
            raise self.error
        return b"{}"


def _make(api: _Api) -> ApplyFailure | None:
    secret = plan_objects(MANAGED)[0].store_secret
    assert secret is not None
    owner = owner_reference("qwen3-32b", UID)
    return asyncio.run(make_store_secret(Writer(api), secret, owner))  # type: ignore[arg-type]


def _body(request: Request) -> Mapping[str, Any]:
    assert isinstance(request.body, Mapping)
    return request.body


def test_it_is_created_and_the_resource_owns_it() -> None:
    api = _Api()
    assert _make(api) is None
    assert _make(api) is None
    for request in api.requests:
        assert (request.method, request.path) == ("POST", "/api/v1/namespaces/default/secrets")
        assert [owner["uid"] for owner in _body(request)["metadata"]["ownerReferences"]] == [UID]
    passwords = {_body(request)["stringData"]["password"] for request in api.requests}
    assert len(passwords) == 2
    assert all(len(bytes.fromhex(password)) == 32 for password in passwords)


def test_one_that_is_there_is_no_failure() -> None:
    assert _make(_Api(ConflictError("already exists"))) is None


@pytest.mark.parametrize("error", [ForbiddenError("no right to create secrets")])
def test_what_fails_says_what_to_do_and_no_password(error: KvtierError) -> None:
    api = _Api(error)
    failure = _make(api)
    assert failure is not None
    assert (failure.component, failure.reason) == (Component.STORE, "Forbidden")
    assert failure.message == (
        "Secret qwen3-32b-store cannot be made: make it with the key password, or name one in "
        "spec.tiers.remote.credentials.secretRef: no right to create secrets"
    )
    assert _body(api.requests[0])["stringData"]["password"] not in failure.message


def test_a_resource_without_a_store_or_with_a_secret_of_its_own_makes_none() -> None:
    assert plan_objects()[0].store_secret is None
    own = {"capacity": "4Gi", "managed": {}, "credentials": {"secretRef": {"name": "mine"}}}
    assert plan_objects({"spec.tiers.remote": own})[0].store_secret is None
