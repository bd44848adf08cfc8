import pytest
from tests.cases.checks import PASS, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.cache_blocks import block_hash

DISK = {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}


@pytest.mark.parametrize(
    "given",
    [
        ["--prefix-caching-hash-algo", "xxhash"],
        ["--prefix-caching-hash-algo=xxhash_cbor"],
        ["--prefix_caching_hash_algo", "xxhash"],
        ["--prefix_caching-hash_algo=xxhash"],
        ["--prefix-caching-hash", "xxhash"],
        ["--prefix-c=xxhash"],
        ["--prefix-caching-hash-algo", "sha256", "--prefix-caching-hash-algo", "xxhash"],
    ],
    ids=" ".join,
)
def test_a_hash_that_can_be_collided(given: list[str]) -> None:
    algorithm = "xxhash_cbor" if "cbor" in given[0] else "xxhash"
    result = verdict(block_hash, resource(engine={"extraArgs": given}))
    says(result, WARN, "BlockHashNotCryptographic", f"algo {algorithm}:", "share its tier so", "set sha256")
    last = max(place for place, word in enumerate(given) if word.startswith("--"))
    assert result.field == f"spec.engine.extraArgs[{last}]"
    says(
        verdict(block_hash, resource(engine={"extraArgs": given}, tiers=DISK)),
        WARN,
        "BlockHashNotCryptographic",
        "the disk's after a restart too",
    )


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["--prefix-caching-hash-algo", "sha256_cbor"],
        ["--prefix-caching-hash-algo", "xxhash", "--prefix_caching_hash_algo=sha256"],
        ["--served-by", "xxhash"],
    ],
    ids=" ".join,
)
def test_a_cryptographic_one(given: list[str]) -> None:
    says(verdict(block_hash, resource(engine={"extraArgs": given}, tiers=DISK)), PASS, "Passed", "sha256")
