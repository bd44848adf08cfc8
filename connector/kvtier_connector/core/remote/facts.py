"""What there is to say of a store by what it says of itself."""

from collections.abc import Iterator

from kvtier_connector.core.machine.memory import format_bytes
from kvtier_connector.core.remote.findings import Finding, Level
from kvtier_connector.core.remote.store import ServerFacts


def facts_judged(facts: ServerFacts, capacity_bytes: int) -> Iterator[Finding]:
    """Judge what a server says of itself."""
    if facts.maxmemory_bytes is None:
        yield Finding(Level.GOOD, facts.version)
        yield Finding(Level.NOTE, "capacity: not told, as the store's client does not say what it may hold")
        return
    yield Finding(
        Level.GOOD,
        f"{facts.version}, {format_bytes(facts.used_bytes)} used, {facts.evicted_keys} keys evicted",
    )
    for server in facts.absent:
        yield Finding(
            Level.WARN,
            f"{server} does not answer: what it has is computed until it does; see that it serves there",
            "remote_url",
        )
    if not facts.maxmemory_bytes:
        yield Finding(
            Level.BAD,
            "maxmemory is not set, so it grows until it is killed; set it"
            + (f" to {format_bytes(capacity_bytes)}, of all servers together" if capacity_bytes else ""),
            "remote_capacity_bytes",
        )
    elif capacity_bytes > facts.maxmemory_bytes and not facts.absent:
        yield Finding(
            Level.BAD,
            f"a capacity of {format_bytes(capacity_bytes)} is more than the server's maxmemory, "
            f"{format_bytes(facts.maxmemory_bytes)}; lower it or raise that",
            "remote_capacity_bytes",
        )
    else:
        yield Finding(Level.GOOD, f"maxmemory is {format_bytes(facts.maxmemory_bytes)}")
    if all(policy.startswith("allkeys-") for policy in facts.policy.split(",")):
        yield Finding(Level.GOOD, f"evicts by {facts.policy}")
    else:
        yield Finding(
            Level.WARN,
            f"maxmemory-policy is {facts.policy or 'not told'}, by which a full server refuses what is new; "
            "set allkeys-lru",
            "remote_url",
        )
