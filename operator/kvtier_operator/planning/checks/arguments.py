"""Whether the engine's arguments are ones that vLLM knows and the plan leaves free."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.spec.command_line import CERTIFICATE, FIELD, SECOND_NAMES, Argument
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.api.spec.tiers import one_of
from kvtier_operator.planning.arguments.serve_options import Fault
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.checks.refused_words import RefusedWords, refused_words
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.kv_cache.split import ENGINES_BY, EXECUTOR
from kvtier_operator.planning.model_shape.shape import LayerKind
from kvtier_operator.planning.pod.engine_memory import API_SERVERS, api_servers
from kvtier_operator.planning.verdict import CheckResult

_REASON: Final = "ArgumentNotKnown"


@check(FIELD)
def known_arguments(parts: CheckInput) -> CheckResult:
    """An engine ends at once, with its usage, at a word that its minor does not take.

    An image of somebody's own may have a fork or a plugin that takes more.
    """
    if not parts.spec.engine.extra_args.words:
        return known_arguments.passed("no arguments of the resource's own")
    refused = refused_words(parts)
    if not refused.by_minor:
        return known_arguments.passed("vLLM's parser takes them")
    messages = [*_messages(refused).items()]
    if refused.is_certain:
        return known_arguments.reject_each(_REASON, messages)
    return known_arguments.warn_each(_REASON, messages, by_itself="passes them on as they are written")


def _messages(refused: RefusedWords) -> dict[str, str]:
    """Path and message of each, with the minor where it is one's alone."""
    return {
        f"{FIELD}[{fault.position}]": f"in vLLM 0.{minor}, {_fault_text(fault)}"
        if minor
        else _fault_text(fault)
        for minor, faults in refused.by_minor.items()
        for fault in faults
    }


def _fault_text(fault: Fault) -> str:
    """A fault, with the field to set where kvtier derives from it an option that may be meant."""
    if not fault.nearest:
        fields = (f"; for {name} set {_DERIVED[name]}" for name in fault.names if name in _DERIVED)
        return f"{fault.message}{''.join(fields)}"
    field = _DERIVED.get(fault.nearest)
    if field is None and fault.nearest in _RESERVED_OPTIONS:
        return f"{fault.message}: remove it"
    meant = f"set {field} if {fault.nearest} is meant" if field else f"give {fault.nearest}, if that is meant"
    return f"{fault.message}: {meant}, or remove it"


_ONE_PORT: Final = "kvtier runs all engines of a pod behind one port, on one node; remove it"
_OTHER_PARALLELISM: Final = (
    "kvtier plans tensor and data parallelism only, and a rank would keep other layers or tokens than "
    "planned; remove it"
)
_OVERWRITES: Final = "it would overwrite kvtier's connector; set {} instead, and remove this"
_DERIVED: Final[Mapping[str, str]] = {
    "--kv-transfer-config": "spec.backend and spec.tiers",
    "--tensor-parallel-size": "spec.engine.tensorParallelSize",
    "--data-parallel-size": "spec.engine.dataParallelSize",
    "--max-model-len": "spec.engine.maxModelLen",
    "--block-size": "spec.engine.blockSize",
    "--gpu-memory-utilization": "spec.engine.gpuMemoryUtilization",
    "--device-memory-utilization": "spec.engine.gpuMemoryUtilization",
    "--kv-cache-memory-bytes": "spec.engine.kvCacheMemory",
    "--num-gpu-blocks-override": "spec.engine.kvCacheMemory",
    "--kv-cache-dtype": "spec.engine.kvCacheDtype",
    "--shutdown-timeout": "spec.engine.drainSeconds",
    "--port": "spec.engine.port",
    "--model": "spec.model.name",
    "--served-model-name": "spec.model.servedNames",
    "--revision": "spec.model.revision",
}
"""Options that kvtier writes, by the fields that it writes them from."""


def _derivation_advice(fields: str) -> str:
    these = "those" if " and " in fields else "that"
    return f"kvtier derives it from {fields}; set {these} instead, and remove this"


_RESERVED_OPTIONS: Final = {
    **{option: _derivation_advice(fields) for option, fields in _DERIVED.items()},
    # vLLM, config/vllm.py: it replaces the connector of --kv-transfer-config.
    "--kv-offloading-size": _OVERWRITES.format("spec.tiers.cpu.capacity"),
    "--kv-offloading-backend": _OVERWRITES.format("spec.backend"),
    "--data-parallel-size-local": _ONE_PORT,
    "--data-parallel-rank": _ONE_PORT,
    "--data-parallel-start-rank": _ONE_PORT,
    "--data-parallel-external-lb": _ONE_PORT,
    "--no-data-parallel-external-lb": _ONE_PORT,
    "--data-parallel-hybrid-lb": _ONE_PORT,
    "--no-data-parallel-hybrid-lb": _ONE_PORT,
    "--data-parallel-multi-port-external-lb": _ONE_PORT,
    "--pipeline-parallel-size": _OTHER_PARALLELISM,
    "--decode-context-parallel-size": _OTHER_PARALLELISM,
    "--prefill-context-parallel-size": _OTHER_PARALLELISM,
    "--enable-prefix-caching": "the tiers need it, so it is always on; remove it",
    "--no-enable-prefix-caching": "the tiers hold the prefix cache, so it is always on; remove it",
    "--disable-prefix-caching": "the tiers hold the prefix cache, so it is always on; remove it",
}
_WITH_VOLUME: Final = {"--download-dir": "weights are kept in spec.model.volume; remove it"}
_WITH_EVENTS: Final = {"--kv-events-config": _derivation_advice("spec.router.kvEvents")}
_WITH_TRACES: Final = {"--otlp-traces-endpoint": _derivation_advice("spec.observability.tracing.endpoint")}
_WITH_ADAPTERS: Final = dict.fromkeys(
    ("--lora-modules", "--no-enable-lora"), _derivation_advice("spec.model.loraModules")
)
_FILE: Final = "--config"
_IN_A_FILE: Final = (
    f"{_FILE} names a file with more arguments, which kvtier cannot check: write each of them into {FIELD}, "
    "and remove it"
)


@check(FIELD)
def reserved_arguments(parts: CheckInput) -> CheckResult:
    """The last one on a command line wins, and the plan would no longer be what runs."""
    reserved = _RESERVED_OPTIONS | (_WITH_EVENTS if parts.spec.router.kv_events else {})
    reserved |= _WITH_TRACES if parts.spec.observability.tracing else {}
    reserved |= _WITH_VOLUME if parts.spec.model.volume else {}
    reserved |= _WITH_ADAPTERS if parts.spec.model.lora_modules else {}
    faults, reason, line = [], "ReservedArgument", parts.spec.engine.extra_args
    for argument in _unambiguous_arguments(parts):
        if argument.means(_FILE):
            reason = "ArgumentsInFile"
            faults.append((argument.field, _IN_A_FILE))
        elif meant := next(filter(argument.means, reserved), None):
            name = line.words[argument.position].partition("=")[0].partition(".")[0]
            is_name = meant in {name.replace("_", "-"), SECOND_NAMES.get(name)}
            short = "" if is_name else f" (vLLM reads it as {meant})"
            faults.append((argument.field, f"{name}{short}: {reserved[meant]}"))
    if faults:
        return reserved_arguments.reject_each(reason, faults)
    return reserved_arguments.passed("no argument that kvtier computes")


def _unambiguous_arguments(parts: CheckInput) -> tuple[Argument, ...]:
    """Arguments, without those that may be several options: vLLM ends at them, as another check tells."""
    ambiguous = refused_words(parts).ambiguous
    return tuple(
        argument for argument in parts.spec.engine.extra_args.arguments if argument.position not in ambiguous
    )


_ANYWHERE: Final = frozenset({"", "None", "0.0.0.0", "::"})  # noqa: S104 - read, not bound
_POOLER: Final = "--pooler-config"
_POOLINGS: Final = ("pooling_type", "seq_pooling_type", "tok_pooling_type")
_OVER_ALL_TOKENS: Final = frozenset({"MEAN", "CLS", "STEP"})
_ONE_POD: Final = "an engine is one pod on one node here"
_OVER_HTTP: Final = "probes, picker and gateway ask engines over HTTP at spec.engine.port"


def _always(_given: CheckInput) -> bool:
    return True


def _has(*kinds: LayerKind) -> Callable[[CheckInput], bool]:
    return lambda parts: parts.geometry.keeps(*kinds)


def _is_on(option: str) -> Callable[[CheckInput], bool]:
    return lambda parts: parts.spec.engine.extra_args.is_on(option)


def _pools_all_tokens(parts: CheckInput) -> bool:
    """Whether vLLM caches no prefixes for it (config/model.py, is_prefix_caching_supported)."""
    arguments = parts.spec.engine.extra_args
    poolings = {str(arguments.json_object(_POOLER).get(name)) for name in _POOLINGS}
    return arguments.value("--runner") != "generate" and not poolings.isdisjoint(_OVER_ALL_TOKENS)


def _has_no_geometry(parts: CheckInput) -> bool:
    return parts.spec.model.geometry is None


def _listens_elsewhere(parts: CheckInput) -> bool:
    return parts.spec.engine.extra_args.value("--host") not in _ANYWHERE


def _stores_latents_apart(parts: CheckInput) -> bool:
    several = parts.spec.engine.tensor_parallel_size > 1
    return several and parts.geometry.shape.keeps_latents_alone and not parts.geometry.stored_once


@dataclass(frozen=True, slots=True)
class _Rule:
    """Why an argument does not go, or may not be meant."""

    why: str  # what is planned in its place
    applies: Callable[[CheckInput], bool] = _always  # when it does not
    otherwise: str = ""  # another way out than to remove it


REFUSED: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys(("--headless", "--nnodes", "--node-rank"), _Rule(_ONE_POD)),
    "--uds": _Rule(_OVER_HTTP),
    "--grpc": _Rule(_OVER_HTTP),
    "--host": _Rule(f"{_OVER_HTTP}, of the pod's address", _listens_elsewhere),
    "--mm-encoder-only": _Rule("such an engine keeps no keys and values, so its tiers stay empty"),
    _POOLER: _Rule(
        "vLLM caches no prefixes where it pools by MEAN, CLS or STEP, so the tiers stay empty",
        _pools_all_tokens,
        "pool by LAST",
    ),
    "--hf-config-path": _Rule(
        "kvtier plans with the configuration of spec.model.name",
        _has_no_geometry,
        "set spec.model.geometry",
    ),
    "--kv-cache-dtype-skip-layers": _Rule(
        "kvtier counts all layers in one dtype",
        lambda parts: bool(parts.geometry.groups),
        "give the sum in spec.model.geometry.kvBytesPerToken",
    ),
    "--disable-sliding-window": _Rule(
        "the layers' windows are planned, and it cuts sequences at a window", _has(LayerKind.SLIDING)
    ),
    "--mamba-block-size": _Rule("the block follows from the model's states", _has(LayerKind.STATE)),
    "--mamba-cache-mode": _Rule("the states are planned as vLLM keeps them", _has(LayerKind.STATE)),
    "--use-replayssm": _Rule("it keeps rings beside the states, which are not planned"),
    "--prefix-match-unit": _Rule(
        "vLLM takes its block alone for a model whose layers keep the same",
        lambda parts: not parts.geometry.hybrid,
    ),
}
WARNED: Final[Mapping[str, _Rule]] = {
    "--disable-log-stats": _Rule("the picker cannot tell who is busy, nor the operator what the tiers hold"),
    "--enable-sleep-mode": _Rule(
        "each sleep empties every tier, the disk too, and page-locks a copy of the weights",
        _is_on("--enable-sleep-mode"),
    ),
    API_SERVERS: _Rule(
        "of several API servers each lets go of the engines at once when a pod ends, so requests under "
        "way are cut off",
        lambda parts: api_servers(parts.spec.engine.extra_args) > 1,
    ),
    **dict.fromkeys(
        (EXECUTOR, ENGINES_BY),
        _Rule(
            "every rank of this model stores its own latent in the tiers, which mp keeps once",
            _stores_latents_apart,
        ),
    ),
    "--weight-transfer-config": _Rule(
        "new weights empty no tier unless they come with a pause that clears caches: prefixes of the old "
        "ones would be served"
    ),
    "--mm-processor-kwargs": _Rule(
        "what an image becomes is not in its blocks' keys: empty the disk tier when you change it",
        lambda parts: parts.tiers.disk is not None,
    ),
    "--numa-bind": _Rule(
        "a rank's part of the tier must fit its NUMA node beside all else of the rank", _is_on("--numa-bind")
    ),
    **dict.fromkeys(
        ("--model-class-overrides", "--worker-cls", "--scheduler-cls"),
        _Rule("code of somebody's own decides what is kept, so the plan may be wrong"),
    ),
}


@check(FIELD)
def unplanned_arguments(parts: CheckInput) -> CheckResult:
    """What would run elsewhere, answer elsewhere or keep something else than is planned."""
    faults, doubts = [], []
    for argument in _unambiguous_arguments(parts):
        for option, rule in REFUSED.items():
            if argument.means(option) and rule.applies(parts):
                advice = f"remove it, or {rule.otherwise}" if rule.otherwise else "remove it"
                faults.append((argument.field, f"{option}: {rule.why}; {advice}"))
        doubts += [
            f"{option}: {rule.why}"
            for option, rule in WARNED.items()
            if argument.means(option) and rule.applies(parts)
        ]
    if faults:
        return unplanned_arguments.reject_each("UnplannedArgument", faults)
    if doubts:
        return unplanned_arguments.warn("UnplannedArgument", "; ".join(doubts))
    return unplanned_arguments.passed("no argument that changes what is planned")


_KEY: Final = "--ssl-keyfile"
_CLIENTS: Final = "--ssl-cert-reqs"
_REQUIRED: Final = "2"  # ssl.CERT_REQUIRED


@check(FIELD)
def engine_tls(parts: CheckInput) -> CheckResult:
    """The kubelet's probes, pickers and Prometheus show no certificate, and ask pods by their addresses."""
    engine = parts.spec.engine
    if not engine.extra_args.serves_tls:
        if engine.extra_args.value(_KEY):
            return engine_tls.reject(
                "CertificateMissing",
                f"{_KEY} without {CERTIFICATE}: vLLM ends at start; give both, or none",
                field=engine.extra_args.field_path(_KEY),
            )
        return engine_tls.passed("the engines serve HTTP")
    place = engine.extra_args.field_path(CERTIFICATE)
    if engine.extra_args.value(_CLIENTS) == _REQUIRED:
        return engine_tls.reject(
            "ClientCertificateRequired",
            f"{_CLIENTS} {_REQUIRED}: probes have no client certificate, so no engine would ever "
            "be ready; remove it, or give 1",
            field=engine.extra_args.field_path(_CLIENTS),
        )
    if parts.observed.machine is not None:
        return engine_tls.reject(
            "EngineServesTLS",
            f"{CERTIFICATE}: a local run asks its engines over HTTP; remove it",
            field=place,
        )
    if parts.picker.tls_args is None:
        others = one_of(flavor for flavor in Flavor if flavor_traits(flavor).tls_args is not None)
        return engine_tls.reject(
            "EngineServesTLS",
            f"{CERTIFICATE}: {parts.picker.title} reads the engines' load over HTTP; remove it, or set "
            f"spec.router.flavor to {others}",
            field=place,
        )
    gateway = parts.spec.router.gateway
    told = "; a BackendTLSPolicy of yours must tell the Gateway" if gateway and gateway.parent_ref else ""
    return engine_tls.warn(
        "EngineServesTLS",
        "the engines serve HTTPS: probes, picker and monitors follow by themselves, without verifying the "
        f"certificate; the status keeps planned sizes, for the operator reads engines over HTTP{told}",
        field=place,
    )
