"""Checks of what stays when room is needed."""

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.kept import (
    prefix_chunks,
    prefix_length,
    prefix_sources,
    prefixes_retained,
    tenant_parts,
)
from kvtier_operator.planning.observed import Machine, Observed

FROM_MAP = {"name": "tools", "fromConfigMap": {"name": "prompts", "key": "tools.txt"}}


def test_nothing_kept_no_word() -> None:
    plain = resource()
    for check in (prefix_length, prefix_chunks, prefixes_retained, prefix_sources):
        says(verdict(check, plain), PASS, "NoPrefixes")
    says(verdict(tenant_parts, plain), PASS, "NoTenants")


def test_a_prefix_leaves_room_for_a_question() -> None:
    def of(tokens: int) -> dict[str, object]:
        return {"name": "numbers", "tokens": [7] * tokens}

    engine = {"maxModelLen": 1000}
    fits = resource(engine=engine, prefixes=[of(999), {"name": "text", "text": "x" * 9000}, FROM_MAP])
    says(verdict(prefix_length, fits), PASS, "Passed")
    refused = verdict(prefix_length, resource(engine=engine, prefixes=[FROM_MAP, of(1000)]))
    says(refused, REJECT, "PrefixTooLong", "1,000", "maxModelLen")
    assert refused.field == "spec.prefixes[1].tokens"


def test_a_prefix_that_fills_no_chunk_is_kept_nowhere() -> None:
    """A chunk of Qwen3-32B has 64 tokens here."""

    def of(tokens: int) -> dict[str, object]:
        return {"name": "numbers", "tokens": [7] * tokens}

    long_text = {"name": "text", "text": "word" * 64}
    says(verdict(prefix_chunks, resource(prefixes=[of(64), long_text, FROM_MAP])), PASS, "Passed", "64")
    short = verdict(prefix_chunks, resource(prefixes=[FROM_MAP, of(63)]))
    says(short, WARN, "PrefixShort", "prefix numbers has 63 tokens", "chunks of 64")
    assert short.field == "spec.prefixes[1]"
    brief = {"name": "text", "text": "Be brief."}
    says(verdict(prefix_chunks, resource(prefixes=[brief])), WARN, "PrefixShort", "has about 3 tokens")
    one = {"name": "text", "text": "hi"}
    says(verdict(prefix_chunks, resource(prefixes=[one])), WARN, "PrefixShort", "has about 1 token,")


def test_how_many_tokens_a_config_map_has_is_not_known() -> None:
    says(verdict(prefixes_retained, resource(prefixes=[FROM_MAP])), PASS, "Unknown", "tools: not known yet")
    both = resource(prefixes=[FROM_MAP, {"name": "numbers", "tokens": [7] * 99}])
    says(verdict(prefixes_retained, both), PASS, "Passed", "about 99 tokens", "tools are not known yet")


@pytest.mark.parametrize("most", ["0%", "1%"])
def test_prefixes_that_are_more_than_may_be_retained(most: str) -> None:
    """1% of 4,096 tokens, as 1 GiB holds of Qwen3-32B, and about 250 of text."""
    prefixes = [{"name": "text", "text": "word" * 250}]
    tight = resource(tiers={"cpu": {"capacity": "1Gi", "retained": {"most": most}}}, prefixes=prefixes)
    says(verdict(prefixes_retained, tight), WARN, "PrefixesNotRetained", "250", "retained.most")
    roomy = resource(tiers={"cpu": {"capacity": "1Gi"}}, prefixes=prefixes)
    says(verdict(prefixes_retained, roomy), PASS, "Passed", "of 1,228")


def test_a_local_run_has_no_config_maps() -> None:
    says(verdict(prefix_sources, resource(prefixes=[FROM_MAP])), PASS, "Passed", "tools")
    here = Observed(machine=Machine())
    says(verdict(prefix_sources, resource(prefixes=[FROM_MAP]), here), WARN, "NoConfigMapHere", "tools")


def test_the_config_map_that_kvtier_makes_is_nobodys_source() -> None:
    name = resource().metadata.name
    own = {"name": "own", "fromConfigMap": {"name": f"{name}-prefixes", "key": "own.json"}}
    refused = verdict(prefix_sources, resource(prefixes=[FROM_MAP, own]))
    says(refused, REJECT, "OwnConfigMap", f"{name}-prefixes", "another name")
    assert refused.field == "spec.prefixes[1].fromConfigMap.name"


def test_a_tenant_whose_part_holds_no_sequence() -> None:
    tiers = {"cpu": {"capacity": "1Gi"}}
    tenants = [{"name": "wide"}, {"name": "narrow", "most": "10%"}]
    engine = {"maxModelLen": 4096}
    small = verdict(tenant_parts, resource(engine=engine, tiers=tiers, tenants=tenants))
    says(small, WARN, "TenantPartSmall", "10% of the CPU tier is 409 tokens", "4,096")
    assert small.field == "spec.tenants[1].most"
    says(verdict(tenant_parts, resource(engine=engine, tiers=tiers, tenants=tenants[:1])), PASS, "Passed")
