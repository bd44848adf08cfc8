"""The Secret with a store's password, which the operator makes and never reads."""

import secrets
from collections.abc import Mapping
from typing import Any, Final

from kvtier_common.errors import KvtierError
from kvtier_operator.planning.base.names import Component
from kvtier_operator.planning.objects.store import PASSWORD_KEY
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.apply.writer import Writer

_PASSWORD_BYTES: Final = 32
"""From the kernel's source of random numbers."""


async def make_store_secret(
    writer: Writer, secret: Mapping[str, Any], owner: Mapping[str, Any]
) -> ApplyFailure | None:
    """Makes the Secret with a new password; one that is there keeps its own. Why it failed, if it did.

    Args:
        writer: Who writes.
        secret: The Secret without its password.
        owner: Reference to the resource, with which the Secret is deleted.
    """
    manifest = {
        **secret,
        "metadata": {**secret["metadata"], "ownerReferences": [dict(owner)]},
        "stringData": {PASSWORD_KEY: secrets.token_hex(_PASSWORD_BYTES)},
    }
    try:
        await writer.create_secret(manifest)
    except KvtierError as error:
        name = secret["metadata"]["name"]
        todo = f"make it with the key {PASSWORD_KEY}, or name one in spec.tiers.remote.credentials.secretRef"
        reason = type(error).__name__.removesuffix("Error")
        return ApplyFailure(Component.STORE, reason, f"Secret {name} cannot be made: {todo}: {error}")
    return None
