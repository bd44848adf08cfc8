"""Envoy's configuration: of a local run, and of a gateway that clients of other machines ask."""

import json
from typing import Any

from kvtier_operator.api.spec.router import FailureMode
from kvtier_operator.planning.envoy.bootstrap import bootstrap
from kvtier_operator.planning.envoy.gateway import (
    Address,
    BodyMode,
    EngineService,
    Entrance,
    Gateway,
    KnownEngines,
    Picker,
)

LOCAL = Gateway(
    Address("127.0.0.1", 8000),
    KnownEngines([Address("127.0.0.1", 8001), Address("127.0.0.1", 8002)]),
    Picker(Address("127.0.0.1", 9002), FailureMode.FAIL_CLOSE),
)
OTHER = Address("small-gateway", 80)


def entrance(**more: Any) -> Gateway:  # noqa: ANN401 - Entrance's fields
    picker = Picker(Address("big-picker", 9002), body=BodyMode.STREAMED, tls=True, check_s=1)
    engines = EngineService(Address("big-engine", 8000), tls=True)
    entry = Entrance(1 << 30, **({"paths": ["/v1/models", "/a.b"]} | more))
    return Gateway(Address("0.0.0.0", 8080), engines, picker, entrance=entry)  # noqa: S104


def clusters(gateway: Gateway) -> dict[str, Any]:
    return {cluster["name"]: cluster for cluster in bootstrap(gateway)["static_resources"]["clusters"]}


def manager(gateway: Gateway) -> Any:  # noqa: ANN401 - of Envoy's API
    [listener] = bootstrap(gateway)["static_resources"]["listeners"]
    [one] = listener["filter_chains"][0]["filters"]
    return one["typed_config"]


def filter_names(gateway: Gateway) -> list[str]:
    return [each["name"] for each in manager(gateway)["http_filters"]]


def routes(gateway: Gateway) -> list[Any]:
    [host] = manager(gateway)["route_config"]["virtual_hosts"]
    return list(host["routes"])


def test_a_local_run_knows_its_engines_and_has_no_door_to_guard() -> None:
    found = clusters(LOCAL)
    assert set(found) == {"engines", "picker"}
    assert {each["type"] for each in found.values()} == {"STATIC"}
    assert "transport_socket" not in found["picker"]
    assert bootstrap(LOCAL)["admin"]["address"]["socket_address"]["port_value"] == 0
    assert "overload_manager" not in bootstrap(LOCAL)
    assert [route["route"]["cluster"] for route in routes(LOCAL)] == ["engines"]


def test_foreign_clients_may_not_hold_what_they_do_not_use() -> None:
    bounds = {"request_headers_timeout", "request_timeout", "common_http_protocol_options"}
    assert bounds <= manager(entrance()).keys()
    assert bounds.isdisjoint(manager(LOCAL))
    # an answer may be silent for as long as it takes
    assert manager(entrance())["stream_idle_timeout"] == "0s"


def test_all_other_paths_are_answered_by_itself_before_anything_is_read() -> None:
    shared = entrance(model_router=Address("127.0.0.1", 9002), others={"small": OTHER}, tells_endpoint=True)
    kept_back = routes(shared)[1]
    paths = kept_back["match"]["headers"]
    assert [path["string_match"]["safe_regex"]["regex"] for path in paths] == [
        *(r"/v1/models([/?].*)?", r"/a\.b([/?].*)?")
    ]
    assert all(path["invert_match"] for path in paths)
    body = json.loads(kept_back["direct_response"]["body"]["inline_string"])
    assert body["error"]["code"] == kept_back["direct_response"]["status"] == 404
    filters = set(filter_names(shared))
    unread = {name for name, each in kept_back["typed_per_filter_config"].items() if each["disabled"]}
    assert unread == filters - {"envoy.filters.http.router"}
    assert len(routes(entrance(paths=["/"]))) == len(routes(entrance())) - 1


def test_names_are_looked_up_and_engines_found_as_the_picker_names_them() -> None:
    found = clusters(entrance())
    assert {name: each["type"] for name, each in found.items()} == {
        "picked-engine": "ORIGINAL_DST",
        "engines": "STRICT_DNS",
        "picker": "STRICT_DNS",
    }
    assert all("transport_socket" in each for each in found.values())
    ready, _, named, unnamed = routes(entrance())
    assert ready["direct_response"] == {"status": 200}
    assert named["match"]["headers"] == [{"name": "x-gateway-destination-endpoint", "present_match": True}]
    assert (named["route"]["cluster"], unnamed["route"]["cluster"]) == ("picked-engine", "engines")


def test_another_resources_model_goes_on_to_its_gateway_once() -> None:
    shared = entrance(model_router=Address("127.0.0.1", 9002), others={"small": OTHER})
    assert set(clusters(shared)) - set(clusters(entrance())) == {"gateway-small", "model-router"}
    [ready, kept_back, passed_on] = routes(shared)[:3]
    [named, first_hand] = passed_on["match"]["headers"]
    assert (named["string_match"]["exact"], first_hand["present_match"]) == ("small", False)
    assert passed_on["request_headers_to_add"][0]["header"]["key"] == first_hand["name"]
    # the other's gateway asks its own, and a client cannot say whose a request is
    assert passed_on["request_headers_to_remove"] == [named["name"]]
    [early] = manager(shared)["early_header_mutation_extensions"]
    assert {"remove": named["name"]} in early["typed_config"]["mutations"]
    asked = ["model-router", "envoy.filters.http.ext_proc"]
    for unasked in (ready, kept_back, passed_on):
        assert list(unasked["typed_per_filter_config"]) == asked
    assert filter_names(shared) == ["envoy.filters.http.header_mutation", *asked, "envoy.filters.http.router"]


def test_answers_say_where_they_come_from_only_when_asked_to() -> None:
    assert filter_names(entrance())[0] == "envoy.filters.http.header_mutation"
    assert filter_names(entrance(tells_endpoint=True))[0] == "envoy.filters.http.ext_proc"
    assert filter_names(LOCAL)[0] == "envoy.filters.http.ext_proc"


def test_a_late_answer_is_told_of_whom_it_may_be() -> None:
    def said(gateway: Gateway) -> Any:  # noqa: ANN401 - of Envoy's API
        [mapper] = manager(gateway)["local_reply_config"]["mappers"]
        return mapper["body_format_override"]["text_format_source"]["inline_string"]

    picker = "the endpoint picker did not answer in 2 s\n"
    assert said(LOCAL) == said(entrance()) == picker
    shared = entrance(model_router=Address("127.0.0.1", 9004))
    assert said(shared) == f"the model router did not answer in 10 s, or {picker}"
