"""Who reaches which port of picker and engines, read as a network reads the policies."""

from collections.abc import Mapping

import pytest
from tests.unit.operator.planning.objects.built import Object, objects, one

EXT_PROC, HEALTH, METRICS, HBONE = 9002, 9003, 9090, 15008
EVENTS = {"spec.router.flavor": "builtin", "spec.router.kvEvents": True}


def gateway(provider: str, **parent: str) -> dict[str, object]:
    return {"spec.router.gateway": {"parentRef": {"name": "g", **parent}, "provider": provider}}


def policies(changes: Mapping[str, object]) -> dict[str, Object]:
    built = [document for document in objects(changes) if document["kind"] == "NetworkPolicy"]
    return {document["metadata"]["labels"]["app.kubernetes.io/component"]: document for document in built}


def admitted(policy: Object, port: int, protocol: str = "TCP") -> list[Object] | None:
    """Who may connect there; None for everybody."""
    peers: list[Object] = []
    for rule in policy["spec"]["ingress"]:
        if any(
            each["protocol"] == protocol and each["port"] <= port <= each.get("endPort", each["port"])
            for each in rule["ports"]
        ):
            if "from" not in rule:
                return None
            peers += rule["from"]
    return peers


def namespaces(peers: list[Object] | None) -> set[str]:
    assert peers is not None
    return {
        peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        for peer in peers
        if "namespaceSelector" in peer
    }


def blocks(peers: list[Object] | None) -> set[str]:
    assert peers is not None
    return {peer["ipBlock"]["cidr"] for peer in peers if "ipBlock" in peer}


@pytest.mark.parametrize("provider", ["istio", "kgateway", "agentgateway"])
def test_only_the_gateways_namespace_and_its_own_ask_the_picker(provider: str) -> None:
    changes = {"metadata.namespace": "serving", **gateway(provider, namespace="edge")}
    policy = policies(changes)["picker"]
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert namespaces(admitted(policy, EXT_PROC)) == {"serving", "edge"}
    assert admitted(policy, METRICS) is None
    assert admitted(policy, HEALTH) is None
    assert admitted(policy, 9091) == []


def test_the_policy_selects_the_picker_and_nothing_else() -> None:
    built = objects(gateway("istio"))
    labels = one(built, "Deployment", "picker")["spec"]["template"]["metadata"]["labels"]
    chosen = one(built, "NetworkPolicy", "picker")["spec"]["podSelector"]["matchLabels"]
    assert chosen.items() <= labels.items()
    others = one(built, "Deployment", "engine")["spec"]["template"]["metadata"]["labels"]
    assert not chosen.items() <= others.items()


def test_kvtiers_own_gateway_and_nobody_else_asks_the_picker() -> None:
    changes: dict[str, object] = {"spec.router.gateway": {"provider": "standalone"}}
    [peer] = admitted(policies(changes)["picker"], EXT_PROC) or []
    labels = one(objects(changes), "Deployment", "gateway")["spec"]["template"]["metadata"]["labels"]
    assert [*peer] == ["podSelector"], "of this namespace"
    assert peer["podSelector"]["matchLabels"].items() <= labels.items()
    named = {**changes, "spec.router.networkPolicy": {"namespaces": ["probes"]}}
    assert namespaces(admitted(policies(named)["picker"], EXT_PROC)) == {"probes"}


def test_istios_mesh_reaches_it_as_the_gateway_does() -> None:
    policy = policies(gateway("istio", namespace="edge"))["picker"]
    assert admitted(policy, HBONE) == admitted(policy, EXT_PROC)
    assert admitted(policies(gateway("agentgateway"))["picker"], HBONE) == []


@pytest.mark.parametrize("changes", [{}, gateway("none"), gateway("gke")], ids=str)
def test_none_where_it_is_not_known_who_asks(changes: dict[str, object]) -> None:
    assert policies(changes) == {}


def test_whoever_is_named_may_ask() -> None:
    named = {"spec.router.networkPolicy": {"namespaces": ["proxies"], "ipBlocks": ["10.129.0.0/23"]}}
    changes = {"metadata.namespace": "serving", **named}
    peers = admitted(policies(changes)["picker"], EXT_PROC)
    assert (namespaces(peers), blocks(peers)) == ({"serving", "proxies"}, {"10.129.0.0/23"})
    google = blocks(admitted(policies({**changes, **gateway("gke")})["picker"], EXT_PROC))
    assert google == {"10.129.0.0/23", "35.191.0.0/16", "130.211.0.0/22"}


def test_kv_events_are_the_pickers_alone() -> None:
    changes = {**EVENTS, "spec.engine.dataParallelSize": 2}
    built = objects(changes)
    policy = one(built, "NetworkPolicy", "engine")
    for port in (5557, 5558, 5657, 5658):
        peers = admitted(policy, port)
        assert peers is not None
        [peer] = peers
        assert [*peer] == ["podSelector"], "of this namespace"
        labels = one(built, "Deployment", "picker")["spec"]["template"]["metadata"]["labels"]
        assert peer["podSelector"]["matchLabels"].items() <= labels.items()
    for port in (1, 5556, 5559, 5656, 5659, 8000, 65535):
        assert admitted(policy, port) is None
    assert admitted(policy, 5557, "UDP") is None


def test_the_serving_port_is_named_for_networks_without_ranges() -> None:
    policy = policies({**EVENTS, "spec.engine.port": 8123})["engine"]
    ports = [port for rule in policy["spec"]["ingress"] if "from" not in rule for port in rule["ports"]]
    assert {"protocol": "TCP", "port": 8123} in ports


def test_no_policy_is_a_choice() -> None:
    off = {"spec.router.networkPolicy": {"enabled": False}}
    assert policies({**EVENTS, **off}) == {}
    assert policies({**gateway("istio"), **off}) == {}
