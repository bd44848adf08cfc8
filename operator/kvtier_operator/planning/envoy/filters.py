"""Envoy's HTTP filters: the model router says whose request it is, then the picker is asked."""

from typing import Any, Final

from kvtier_operator.api.spec.router import FailureMode
from kvtier_operator.planning.envoy.clusters import MODEL_ROUTER, PICKER
from kvtier_operator.planning.envoy.extensions import EXT_PROC, any_of, extension
from kvtier_operator.planning.envoy.gateway import BodyMode, Gateway, Picker
from kvtier_scorer.config.contract import SERVED

PICK_TIMEOUT_S: Final = 2.0
"""How long the picker may take before the failure mode decides. A pick takes milliseconds."""

_UNAVAILABLE: Final = 503

# Nothing else here has a time limit: a 504 of Envoy's own is a picker that did not answer in time.
LATE_PICK: Final = {
    "filter": {
        "status_code_filter": {"comparison": {"value": {"default_value": 504, "runtime_key": "late_pick"}}}
    },
    "status_code": _UNAVAILABLE,
    "body_format_override": {
        "text_format_source": {
            "inline_string": f"the endpoint picker did not answer in {PICK_TIMEOUT_S:g} s\n"
        }
    },
}


def http_filters(gateway: Gateway) -> list[dict[str, Any]]:
    """In the order in which a request passes them, and an answer against it."""
    entrance = gateway.entrance
    return [
        *([_silence()] if entrance and not entrance.tells_endpoint else []),
        *([_model_router(gateway.body)] if entrance and entrance.model_router else []),
        *([] if gateway.picker is None else [_picker(gateway.picker)]),
        extension("envoy.filters.http.router", "filters.http.router.v3.Router", {}),
    ]


def unasked(gateway: Gateway) -> dict[str, Any]:
    """`typed_per_filter_config` of a route that neither the model router nor the picker is asked for."""
    names = (
        *((MODEL_ROUTER,) if gateway.entrance and gateway.entrance.model_router else ()),
        *((EXT_PROC,) if gateway.picker else ()),
    )
    disabled = {**any_of("filters.http.ext_proc.v3.ExtProcPerRoute"), "disabled": True}
    return {"typed_per_filter_config": dict.fromkeys(names, disabled)} if names else {}


def _silence() -> dict[str, Any]:
    """Whoever knows which engine served them can aim at those who share their prefix.

    A route's `response_headers_to_remove` would come before the picker writes the header.
    """
    return extension(
        "envoy.filters.http.header_mutation",
        "filters.http.header_mutation.v3.HeaderMutation",
        {"mutations": {"response_mutations": [{"remove": SERVED}]}},
    )


def _model_router(body: BodyMode) -> dict[str, Any]:
    """Gets the body as the picker does: a whole one, which it would pass on as one, is too large for some.

    Without it nobody knows whose a request is, so a request is refused while it is away.
    """
    return _ext_proc(MODEL_ROUTER, MODEL_ROUTER, {**_request_mode(body), "response_header_mode": "SKIP"})


def _picker(picker: Picker) -> dict[str, Any]:
    return _ext_proc(
        EXT_PROC,
        PICKER,
        {**_request_mode(picker.body), "response_header_mode": "SEND"},
        failure_mode_allow=picker.failure_mode is FailureMode.FAIL_OPEN,
        metadata_options={"receiving_namespaces": {"untyped": ["envoy.lb"]}},
    )


def _request_mode(body: BodyMode) -> dict[str, str]:
    # a body in parts ends with its trailers, which ext_proc wants to be asked for
    trailers = {"request_trailer_mode": "SEND"} if body is BodyMode.STREAMED else {}
    return {"request_body_mode": body.value, **trailers}


def _ext_proc(name: str, cluster: str, mode: dict[str, str], **settings: Any) -> dict[str, Any]:  # noqa: ANN401 - of Envoy's API
    return extension(
        name,
        "filters.http.ext_proc.v3.ExternalProcessor",
        {
            "grpc_service": {"envoy_grpc": {"cluster_name": cluster}},
            "message_timeout": f"{PICK_TIMEOUT_S:g}s",
            "status_on_error": {"code": _UNAVAILABLE},
            "processing_mode": {"request_header_mode": "SEND", "response_body_mode": "NONE", **mode},
            **settings,
        },
    )
