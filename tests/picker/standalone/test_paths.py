"""What a resource's own gateway passes to its engines, with a real Envoy."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.picker.harness.client import Answer, get, post
from tests.picker.harness.envoy import Envoy
from tests.picker.harness.fleet import Fleet
from tests.picker.standalone.placed import NOBODY, Places, Wanted, running_gateway

from kvtier_operator.planning.router.engine_routes import ENGINE_ROUTES, is_below, passed_paths

KEPT_BACK = [route.path for route in ENGINE_ROUTES if not route.use.passes]
MODELS = [{"name": "small", "resource": "small"}]


@pytest.fixture(scope="module")
def places(fleet: Fleet) -> Places:
    """Engines, and no picker: a request that asks one is refused."""
    return {"case-engine": fleet.pods, "case-picker": [NOBODY], "small-gateway": fleet.pods}


@pytest.fixture(scope="module")
def closed(places: Places, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    wanted = Wanted(mode="FailClose", settings={"models": MODELS})
    with running_gateway(wanted, places, tmp_path_factory.mktemp("closed")) as envoy:
        yield envoy


@pytest.fixture(scope="module")
def opened(places: Places, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    with running_gateway(Wanted(), places, tmp_path_factory.mktemp("opened")) as envoy:
        yield envoy


def test_what_is_kept_back_is_answered_with_the_field_and_without_a_pick(closed: Envoy) -> None:
    url = closed.url("gateway")
    body = json.dumps({"model": "small", "prompt": "é" * 200_000}).encode()
    for path in (*KEPT_BACK, "/", "/v1", "/v1/modelsX", "/V1/models", "/v1//models", "//v1/models", "/x"):
        for answer in (get(url + path), post(url + path, body)):
            assert (answer.status, answer.engine) == (404, ""), path
            assert answer.headers["content-type"] == "application/json"
            assert "spec.router.gateway.extraPaths" in json.loads(answer.body)["error"]["message"]
    # without a picker others are refused, or are another gateway's
    assert get(f"{url}/v1/models").status == 503
    assert post(f"{url}/v1/completions", body).status == 200


def test_what_passes_does_with_all_below_it(opened: Envoy, fleet: Fleet) -> None:
    for path in passed_paths():
        for below in ("", "/", "/more", "?a=/metrics"):
            assert asked(opened, path + below).engine in fleet.addresses, path + below


ROUNDABOUT = [
    *("/{}", "//{}", "/./{}", "/%2e/{}", "/%2F{}", "/v1/models/../../{}", "/v1/models/..;/..;/{}"),
    *(
        "/v1/models/%2e%2e/%2E%2E/{}",
        "/v1/models/..%2f..%2f{}",
        "/v1/models%2F..%2F..%2F{}",
        "/v1/models//../{}",
    ),
    *(
        "/v1/models/..%5c..%5c{}",
        "/v1/models/..\\..\\{}",
        "/v1/models/%252e%252e/%252e%252e/{}",
        "/{}?/v1/models",
    ),
    *("/{};/v1/models", "/{}%00", "/{}%3f/v1/models", "/v1/../{}/../{}", "/v1/models/.%2e/.%2e/{}"),
]


@pytest.mark.parametrize("form", ROUNDABOUT)
def test_no_way_round_leads_to_what_is_kept_back(opened: Envoy, fleet: Fleet, form: str) -> None:
    """An engine decodes a path once and takes it as it is; here it may also clean it up."""
    seen: list[str] = []
    for engine in fleet.engines.values():
        engine.bodies = lambda path, _: seen.append(path)
    try:
        for path in ("metrics", "sleep", "METRICS", "%6detrics", "v1/load_lora_adapter"):
            assert asked(opened, form.replace("{}", path)).status in {200, 400, 404}
    finally:
        for engine in fleet.engines.values():
            engine.bodies = None
    for path in (unquote(each.partition("?")[0]) for each in seen):
        assert any(is_below(path, each) for each in passed_paths()), path
        assert ".." not in path.replace("\\", "/").split("/"), path


def test_what_the_field_opens_and_no_more(places: Places, tmp_path: Path, fleet: Fleet) -> None:
    def engines_of(extra: list[str], *paths: str) -> list[bool]:
        folder = tmp_path / str(len(extra))
        folder.mkdir()
        with running_gateway(Wanted(gateway={"extraPaths": extra}), places, folder) as envoy:
            return [asked(envoy, path).engine in fleet.addresses for path in paths]

    assert engines_of(["/metrics"], "/metrics", "/metrics/", "/metricsX", "/sleep") == [
        True,
        True,
        False,
        False,
    ]
    longest = f"/{'a-b.c~' * 10}d/e"
    assert engines_of(["/b", "/c", longest], longest, "/b/c", "/d") == [True, True, False]
    assert engines_of(["/a", "/"], "/metrics", "/sleep", "/anything/else", "/") == [True] * 4


def asked(envoy: Envoy, path: str) -> Answer:
    """Asks for a path as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", envoy.ports["gateway"], timeout=60)
    try:
        connection.putrequest("GET", path)
        connection.endheaders()
        answer = connection.getresponse()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, named, answer.read())
    finally:
        connection.close()
