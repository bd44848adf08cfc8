"""Whether blocks that several clients share are named by a hash that none of them can collide."""

from typing import Final

from kvtier_operator.planning.arguments.extra_args import FIELD, field_path_of, value_of
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("block-hash", FIELD)
_OPTION: Final = "--prefix-caching-hash-algo"
_DEFAULT: Final = "sha256"
_CRYPTOGRAPHIC: Final = (_DEFAULT, "sha256_cbor")
"""Of what vLLM 0.32 and 0.33 take, the others are xxhash and xxhash_cbor (config/cache.py)."""


def block_hash(given: CheckInput) -> CheckResult:
    """Who finds a second prompt with a block's hash has the tier answer that prompt with the first one's KV.

    All clients of a model share its tiers, and what is on disk is found by later starts, too. vLLM makes up
    for a weak hash with a secret seed, but the pods of one model have the same one, which is no secret.
    """
    spec = given.spec
    algorithm = value_of(spec.engine.extra_args, _OPTION) or _DEFAULT
    if algorithm in _CRYPTOGRAPHIC:
        return _VERDICTS.passed(f"blocks are named by {algorithm}")
    where = "its tiers, the disk's after a restart too," if spec.tiers.disk else "its tier"
    return _VERDICTS.warn(
        "BlockHashNotCryptographic",
        f"{_OPTION} {algorithm}: a client can make a prompt whose blocks have the names of "
        f"another's, and all clients of the model share {where} so that one is answered from the other's KV "
        f"cache; where they do not trust each other set {_DEFAULT}, vLLM's default, or {_CRYPTOGRAPHIC[1]}",
        by_itself="passes it on",
        field=field_path_of(spec.engine.extra_args, _OPTION),
    )
