"""Every path of vLLM is either passed by gateways or kept back, and none is reached under another's name."""

import ast
import importlib.util
import logging
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kvtier_connector.bench.vllm_arguments import serve_parser
from kvtier_operator.planning.router.engine_routes import ENGINE_ROUTES, passed_paths

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

_SWITCHES: Final = (
    *("VLLM_SERVER_DEV_MODE", "VLLM_ALLOW_RUNTIME_LORA_UPDATING", "VLLM_ENABLE_COHERE_API"),
    "VLLM_TORCH_PROFILER_DIR",
)
_FLAGS: Final = (
    "enable_scale_out",
    "tokens_only",
    "enable_tokenizer_info_endpoint",
    "enable_fault_tolerance",
)
_ADDS: Final = {
    *("get", "post", "put", "patch", "delete", "head", "options", "trace", "api_route", "route", "mount"),
    *("websocket", "websocket_route", "add_api_route", "add_route"),
    *("add_api_websocket_route", "add_websocket_route"),
}
"""Methods of FastAPI's and Starlette's applications and routers that add a route."""
_WRITTEN_ELSEWHERE: Final = {"app.swagger_ui_oauth2_redirect_url", "route.path"}
"""In vLLM's sources in place of a path: of an application, and of routes that are switched off."""


class _Model:
    """As much of a model's configuration as routers are chosen by."""

    def __init__(self, task: str) -> None:
        self._task = task

    def get_pooling_task(self, _: object) -> str:
        return self._task

    def __getattr__(self, _: str) -> None:
        return None


@pytest.fixture(scope="module")
def apps() -> list[Any]:
    """vLLM's server with all that it can have, for models that generate and for two that do not."""
    level = logging.getLogger().level
    with pytest.MonkeyPatch.context() as patch:
        for name in _SWITCHES:
            patch.setenv(name, "1")
        from vllm.entrypoints.launchers.app import build_app  # noqa: PLC0415 - takes seconds

        def built(*tasks: str) -> Any:  # noqa: ANN401 - FastAPI's
            return build_app(_arguments(), tasks, _Model(tasks[0]))

        apps_ = [
            built("generate", "render", "transcription", "realtime"),
            built("embed", "classify"),
            built("token_embed"),
        ]
    logging.getLogger().setLevel(level)  # a library that serves SageMaker silences everybody
    return apps_


def _arguments() -> Namespace:
    return Namespace(**(vars(serve_parser().parse_args([])) | dict.fromkeys(_FLAGS, True)))


def _sources() -> Iterator[ast.Module]:
    package = importlib.util.find_spec("vllm.entrypoints")
    assert package
    for folder in package.submodule_search_locations or ():
        for file in Path(folder).rglob("*.py"):
            yield ast.parse(file.read_text(encoding="utf-8"))


def _written() -> Iterator[str]:
    """Paths in the sources, whatever switches them on; other expressions as they are written."""
    for source in _sources():
        for call in ast.walk(source):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args):
                continue
            of = call.func.value.id if isinstance(call.func.value, ast.Name) else ""
            if call.func.attr in _ADDS and of.endswith(("router", "app")):
                path = call.args[0]
                yield path.value if isinstance(path, ast.Constant) else ast.unparse(path)  # type: ignore[misc]


def _minor() -> int:
    import vllm  # noqa: PLC0415 - takes seconds

    return int(vllm.__version__.split(".")[1])


def test_every_route_is_classified_and_no_other(apps: list[Any]) -> None:
    has = {*_written()} - _WRITTEN_ELSEWHERE
    has |= {route.path for app in apps for route in app.routes}
    known = {route.path for route in ENGINE_ROUTES if (route.since or 0) <= _minor()}
    assert (has - known, known - has) == (set(), set())


def test_below_what_passes_no_other_route_answers(apps: list[Any]) -> None:
    """It takes paths as they are, but for %: neither dots nor slashes nor capitals lead elsewhere."""
    ends = [route.path for route in ENGINE_ROUTES if not route.use.passes]
    passing = {route.path for route in ENGINE_ROUTES if route.use.passes}
    for path in passed_paths():
        for end in ends:
            for asked in (f"{path}{end}", f"{path}/..{end}", f"{path}/../..{end}", f"{path}/..;{end}"):
                assert {*_answering(apps, asked)} <= passing, asked
    assert {*_answering(apps, "/metrics/"), *_answering(apps, "/metricsX")} == {"/metrics"}
    for asked in ("//metrics", "/METRICS", "/v1/../metrics", "/V1/models", "/v1/modelsX"):
        assert not [*_answering(apps, asked)], asked


def _answering(apps: list[Any], path: str) -> Iterator[str]:
    for app in apps:
        for route in app.routes:
            scope = {"type": "http", "method": "GET", "path": path, "headers": []}
            if hasattr(route, "path_regex") and route.path_regex.match(scope["path"]):
                yield route.path
