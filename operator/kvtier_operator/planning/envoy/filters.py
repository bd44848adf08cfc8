"""Envoy's HTTP filters: the model's name is read, then the picker is asked."""

from typing import Any, Final

from kvtier_operator.api.spec.router import FailureMode
from kvtier_operator.planning.envoy.clusters import PICKER
from kvtier_operator.planning.envoy.extensions import EXT_PROC, extension
from kvtier_operator.planning.envoy.gateway import BodyMode, Gateway, Picker

PICK_TIMEOUT_S: Final = 2.0
"""How long the picker may take before the failure mode decides. A pick takes milliseconds."""

MODEL_READER: Final = "envoy.filters.http.json_to_metadata"
MODEL: Final = "model"
"""Key of the metadata of MODEL_READER, and of the body that it is read from."""
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
    """In the order in which a request passes them."""
    return [
        *([_model_reader()] if gateway.entrance and gateway.entrance.models else []),
        *([] if gateway.picker is None else [_ext_proc(gateway.picker)]),
        extension("envoy.filters.http.router", "filters.http.router.v3.Router", {}),
    ]


def _model_reader() -> dict[str, Any]:
    """Keeps a body that is JSON until all of it is there, and lets the route be chosen by its model."""
    read = {"metadata_namespace": MODEL_READER, "key": MODEL}
    rules = {
        "rules": [{"selectors": [{"key": MODEL}], "on_present": read}],
        # a media type is the same in capitals
        "allow_content_types_regex": {"regex": "(?i)application/json.*"},
    }
    kind = "filters.http.json_to_metadata.v3.JsonToMetadata"
    return extension(MODEL_READER, kind, {"request_rules": rules})


def _ext_proc(picker: Picker) -> dict[str, Any]:
    # a body in parts ends with its trailers, which ext_proc wants to be asked for
    trailers = {"request_trailer_mode": "SEND"} if picker.body is BodyMode.STREAMED else {}
    return extension(
        EXT_PROC,
        "filters.http.ext_proc.v3.ExternalProcessor",
        {
            "grpc_service": {"envoy_grpc": {"cluster_name": PICKER}},
            "failure_mode_allow": picker.failure_mode is FailureMode.FAIL_OPEN,
            "message_timeout": f"{PICK_TIMEOUT_S:g}s",
            "status_on_error": {"code": _UNAVAILABLE},
            "processing_mode": {
                "request_header_mode": "SEND",
                "request_body_mode": picker.body.value,
                **trailers,
                "response_header_mode": "SEND",
                "response_body_mode": "NONE",
            },
            "metadata_options": {"receiving_namespaces": {"untyped": ["envoy.lb"]}},
        },
    )
