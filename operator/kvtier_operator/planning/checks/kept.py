"""Whether prefixes and tenants have room in what is kept for them."""

from kvtier_operator.api.formats import share_of
from kvtier_operator.api.spec.kept import Prefix
from kvtier_operator.planning.base.names import Names
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.tiers.retained import prefix_tokens_about, retained_tokens, tokens_about
from kvtier_operator.planning.units import count, many
from kvtier_operator.planning.verdict import CheckResult

_NO_PREFIXES = "NoPrefixes"
_UNKNOWN = "Unknown"


@check("spec.prefixes")
def prefix_length(parts: CheckInput) -> CheckResult:
    """An engine refuses a prompt that is longer than its longest sequence; of a text it alone knows."""
    longest = parts.geometry.longest_tokens(parts.spec.engine)
    if not parts.spec.prefixes:
        return prefix_length.passed("no prefixes", reason=_NO_PREFIXES)
    if longest is None:
        return prefix_length.passed("the longest sequence is not known", reason=_UNKNOWN)
    faults = [
        (f"spec.prefixes[{index}].tokens", _too_long(prefix, longest))
        for index, prefix in enumerate(parts.spec.prefixes)
        if len(prefix.tokens or ()) >= longest
    ]
    if faults:
        return prefix_length.reject_each("PrefixTooLong", faults)
    return prefix_length.passed("none that is given as tokens is longer than a sequence")


def _too_long(prefix: Prefix, longest: int) -> str:
    return (
        f"prefix {prefix.name} has {count(len(prefix.tokens or ()))} tokens, the longest sequence has "
        f"{count(longest)}, with what follows the prefix: shorten it, or raise spec.engine.maxModelLen"
    )


@check("spec.prefixes")
def prefix_chunks(parts: CheckInput) -> CheckResult:
    """Tiers hold whole chunks; of a prefix with less they hold nothing."""
    if not parts.spec.prefixes:
        return prefix_chunks.passed("no prefixes", reason=_NO_PREFIXES)
    chunk = parts.backend.tokens_per_chunk
    short = [
        (f"spec.prefixes[{index}]", _too_short(prefix, tokens, chunk))
        for index, prefix in enumerate(parts.spec.prefixes)
        if (tokens := tokens_about(prefix)) is not None and tokens < chunk
    ]
    if short:
        return prefix_chunks.warn_each(
            "PrefixShort", short, by_itself="computes it at each start, and keeps it in no tier", weight=-5
        )
    return prefix_chunks.passed(f"none that is known is shorter than a chunk of {count(chunk)} tokens")


def _too_short(prefix: Prefix, tokens: int, chunk: int) -> str:
    about = "about " if prefix.tokens is None else ""
    return (
        f"prefix {prefix.name} has {about}{many(tokens, 'token')}, and tiers keep chunks of {count(chunk)}: "
        "make it longer, or leave it out"
    )


@check("spec.tiers.cpu.retained")
def prefixes_retained(parts: CheckInput) -> CheckResult:
    """What is beyond the retained part leaves as any other block does."""
    spec = parts.spec
    if not spec.prefixes:
        return prefixes_retained.passed("no prefixes", reason=_NO_PREFIXES)
    tokens, room = prefix_tokens_about(spec), retained_tokens(spec, parts.tiers)
    unknown = ", ".join(prefix.name for prefix in spec.prefixes if tokens_about(prefix) is None)
    if unknown and not tokens:
        return prefixes_retained.passed(
            f"tokens of {unknown}: not known yet, of {count(room)} that are retained", reason=_UNKNOWN
        )
    if tokens <= room:
        beside = f", and those of {unknown} are not known yet" if unknown else ""
        return prefixes_retained.passed(
            f"prefixes have about {count(tokens)} tokens, of {count(room)} that are retained{beside}"
        )
    return prefixes_retained.warn(
        "PrefixesNotRetained",
        f"prefixes have about {count(tokens)} tokens, and {count(room)} are retained in memory: raise "
        "spec.tiers.cpu.retained.most or the capacity, or have fewer",
        by_itself="computes all, and keeps as many as fit before others",
    )


@check("spec.prefixes")
def prefix_sources(parts: CheckInput) -> CheckResult:
    """One ConfigMap is the operator's own, which it applies and prunes; a local run has none."""
    names = [prefix.name for prefix in parts.spec.prefixes if prefix.from_config_map]
    if not names:
        return prefix_sources.passed("no prefix from a ConfigMap", reason=_NO_PREFIXES)
    own = Names.of_resource(parts.resource).prefixes
    faults = [
        (
            f"spec.prefixes[{index}].fromConfigMap.name",
            f"{own} is the ConfigMap that kvtier makes itself of other prefixes: give yours another name",
        )
        for index, prefix in enumerate(parts.spec.prefixes)
        if prefix.from_config_map is not None and prefix.from_config_map.name == own
    ]
    if faults:
        return prefix_sources.reject_each("OwnConfigMap", faults)
    if parts.observed.machine is None:
        return prefix_sources.passed(f"from ConfigMaps: {', '.join(names)}")
    return prefix_sources.warn(
        "NoConfigMapHere",
        f"{', '.join(names)}: this machine has no ConfigMaps; give text or tokens",
        by_itself="runs without",
    )


@check("spec.tenants")
def tenant_parts(parts: CheckInput) -> CheckResult:
    """A part that holds no sequence is none."""
    longest, tokens = parts.geometry.longest_tokens(parts.spec.engine), parts.tiers.cpu.tokens
    if not parts.spec.tenants:
        return tenant_parts.passed("no tenants", reason="NoTenants")
    small = [
        (f"spec.tenants[{index}].most", f"{tenant.most} of the CPU tier is {count(part)} tokens")
        for index, tenant in enumerate(parts.spec.tenants)
        if (part := int(share_of(tenant.most) * tokens)) < (longest or 0)
    ]
    if not small:
        return tenant_parts.passed("each tenant's part of the CPU tier holds the longest sequence")
    (field, first), *others = small
    more = f", and {len(others)} more" if others else ""
    return tenant_parts.warn(
        "TenantPartSmall",
        f"{first}{more}, less than the longest sequence of {count(longest or 0)}: raise it",
        by_itself="keeps the beginnings of such sequences",
        field=field,
        weight=-5,
    )
