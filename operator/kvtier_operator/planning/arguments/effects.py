"""What each option of `vllm serve` takes or changes: the one table from option to memory.

Every option of the minors that kvtier knows is in it once, under its longest positive name (tests/engine/
planning/arguments). Source of the rules: vLLM 0.32 and 0.33, the files that are named beside what is planned
by them (planning/pod/engine_memory.py and others).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from kvtier_operator.api.spec.command_line import SECOND_NAMES, Argument, CommandLine


class EffectKind(StrEnum):
    """What an option acts on, the first that counts."""

    HOST_MEMORY = "host memory"
    DEVICE_MEMORY = "device memory"
    KV_CACHE = "KV cache"
    TIERS = "tiers"
    LIFE = "start and end"
    NOTHING = "nothing planned"


@dataclass(frozen=True, slots=True)
class Effect:
    """What one option does to a plan."""

    option: str  # its longest positive name
    kind: EffectKind
    rule: str  # how much, or what changes; empty where nothing that is planned does


_HOST_MEMORY: Final = {
    "--api-server-count": "1 GiB for each API server, and a multimodal cache of its own",
    "--aux-output-config": "max_bytes for experts' choices, else a copy for each block of the device",
    "--cpu-offload-gb": "that many GiB of weights in each rank's page-locked memory, up to twice by rounding",
    "--cpu-offload-params": "which weights --cpu-offload-gb moves",
    "--ec-transfer-config": "ec_cpu_bytes in /dev/shm, or ec_buffer_size for each pool of a rank",
    "--enable-shm-tensor-arena": "2 GiB in /dev/shm of each engine of more than one rank",
    "--enable-trace-replay": "4 B x --max-num-seqs x the longest sequence, page-locked, in each rank",
    "--engram-config": "where tables of n-grams are kept, which are part of the checkpoint",
    "--load-format": "runai_streamer: min(40 GB, checkpoint) in each rank while it loads; else one file",
    "--max-cpu-loras": "copies of that many adapters in each rank",
    "--max-num-seqs": "4 B x sequences x the longest sequence, page-locked, in each rank",
    "--mm-processor-cache-gb": "that many GiB twice for one API server and engine, twice for each of several",
    "--mm-processor-cache-type": "shm: the multimodal cache is in /dev/shm",
    "--mm-shm-cache-max-object-size-mb": "which items the cache in /dev/shm takes, not its size",
    "--mm-tensor-ipc": "torch_shm: each item on its way is in /dev/shm",
    "--model-loader-extra-config": "memory_limit in place of runai_streamer's 40 GB; distributed: one buffer",
    "--offload-backend": "how weights are moved to host memory",
    "--offload-group-size": "layers of each group in each rank's page-locked memory",
    "--offload-num-in-group": "how many layers of a group are in host memory",
    "--offload-params": "which weights are moved to host memory",
    "--renderer-num-workers": "a copy of the tokenizer for each",
    "--safetensors-load-strategy": "eager: up to three files in each rank while it loads",
    "--safetensors-prefetch-block-size": "a buffer for each reading thread",
    "--safetensors-prefetch-num-threads": "a buffer for each reading thread",
    "--sleep-mode-offload-cudagraph": "CUDA graphs in page-locked memory while an engine sleeps",
    "--sleep-preserve-parameter-names": "these weights in host memory while an engine sleeps at level 2",
    "--structured-outputs-config": "compiled grammars, up to 512 MiB",
}
_DEVICE_MEMORY: Final = {
    "--all2all-backend": "buffers of expert parallelism over several engines, 1 to 2 GiB with DeepEP",
    "--compilation-config": "CUDA graphs of all capture sizes, which vLLM takes off the KV cache",
    "--cudagraph-capture-sizes": "one CUDA graph for each, which vLLM takes off the KV cache",
    "--diffusion-config": "the sampler's memory, for diffusion models alone",
    "--elastic-ep-max-dp-size": "buffers for that many engines",
    "--enable-batch-sharded-sampling": "sampler buffers, divided by the ranks",
    "--enable-chunked-prefill": "off: activations of a whole prompt",
    "--enable-custom-all-reduce": "less than 64 MiB of buffers",
    "--enable-dbo": "a second set of workspaces with several engines",
    "--enable-eplb": "weights of one layer's experts, and loads of --eplb-config's window",
    "--enable-expert-parallel": "whole experts in each rank in place of slices: the same bytes in sum",
    "--enable-mixed-moe-lora-format": "other buffers for adapters of experts",
    "--enable-mm-embeds": "none of the encoder's weights where a limit is 0",
    "--enable-moe-shared-loras": "about half of the buffers for adapters of experts",
    "--enable-nccl-comm-suspend": "none of NCCL's buffers while an engine sleeps",
    "--enable-prompt-embeds": "embeddings of requests under way, outside what vLLM profiles",
    "--enable-tower-connector-lora": "buffers for adapters of encoders",
    "--enforce-eager": "no CUDA graphs: what they took goes to the KV cache",
    "--eplb-config": "num_redundant_experts more experts of each layer, over all ranks",
    "--fully-sharded-loras": "less of each adapter in a rank than is planned",
    "--kernel-config": "the layout of weights, and workspaces, which vLLM profiles",
    "--language-model-only": "no encoders; and no multimodal cache in host memory",
    "--limit-mm-per-prompt": "0 for all: no encoders and no multimodal cache; else their activations",
    "--lora-dtype": "2 B an element, as planned, unless the model is float32",
    "--lora-target-modules": "less for adapters than is planned",
    "--max-cudagraph-capture-size": "more and larger CUDA graphs, which vLLM takes off the KV cache",
    "--max-lora-cls-labels": "less than 64 MiB for classifiers' adapters",
    "--max-lora-rank": "in proportion, for each adapter's slot",
    "--max-loras": "a slot for each adapter of a batch",
    "--max-num-batched-tokens": "activations of a step, and how often states are kept",
    "--media-io-kwargs": "decoders of video on the GPU; else frames in host memory",
    "--mm-encoder-tp-mode": "data: the whole encoder in each rank",
    "--mm-ipc-gpu-memory-gb": "that many GiB off the KV cache of each rank",
    "--mm-processor-device": "where inputs are prepared",
    "--moe-backend": "the layout of experts' weights, and workspaces, which vLLM profiles",
    "--offload-prefetch-step": "buffers of that many layers that come back from host memory",
    "--optimization-level": "0: no CUDA graphs; what they took goes to the KV cache",
    "--performance-mode": "throughput: twice the tokens of a step and twice the sequences by default",
    "--pt-load-map-location": "cuda: a whole .pt file on the GPU while it loads",
    "--quantization": "the weights by the method's bits",
    "--quantization-config": "the weights by the method's bits",
    "--return-sampling-mask": "tens of MB of masks",
    "--skip-mm-profiling": "an encoder's activations are not profiled, so it may run out of memory later",
    "--spec-method": "the draft's layers, as planned",
    "--spec-model": "the draft's layers, as planned",
    "--specialize-active-lora": "CUDA graphs for each number of adapters",
    "--speculative-config": "the draft's weights and layers, as planned",
    "--ubatch-size": "microbatches of a step",
}
_KV_CACHE: Final = {
    "--async-scheduling": "windows reserve one step more; blocks stay",
    "--attention-backend": "the tokens of a block",
    "--attention-config": "the backend's block, and the dtype of a sparse indexer's keys",
    "--block-size": "the tokens of a block",
    "--decode-context-parallel-size": "tokens are divided over ranks",
    "--dtype": "bytes of an element where the cache is of the model's dtype",
    "--enable-hybrid-kv-cache-manager": "off: windows keep all tokens",
    "--enable-sliding-window": "off: sequences are cut at the window",
    "--gpu-memory-utilization": "the device's part that vLLM takes",
    "--hf-config-path": "the configuration that layers are read from",
    "--hf-overrides": "the configuration that layers are read from",
    "--kv-cache-dtype": "bytes of an element",
    "--kv-cache-dtype-skip-layers": "layers that are kept in the model's dtype",
    "--kv-cache-memory-bytes": "bytes of the device's cache",
    "--mamba-block-size": "the tokens of a block",
    "--mamba-cache-dtype": "bytes of a state",
    "--mamba-cache-mode": "which states are kept",
    "--mamba-ssm-cache-dtype": "bytes of a state",
    "--max-model-len": "the longest sequence",
    "--mm-encoder-only": "no KV cache at all",
    "--model-class-overrides": "another class of the model, with layers of its own",
    "--model-impl": "transformers: layers by that library's classes",
    "--num-gpu-blocks-override": "blocks of the device's cache",
    "--pipeline-parallel-size": "layers are divided over ranks",
    "--prefill-context-parallel-size": "tokens are divided over ranks",
    "--replayssm-buffer-len": "rings beside states",
    "--runner": "pooling models cache prefixes only where tokens see those before them",
    "--spec-tokens": "speculative tokens of a step, as planned",
    "--tensor-parallel-size": "heads are divided over ranks",
    "--use-replayssm": "rings beside states",
    "--video-pruning-rate": "fewer tokens for a video, so other blocks",
    "--watermark": "blocks that stay free of running requests; they may hold prefixes",
}
_TIERS: Final = {
    "--convert": "pooling models cache prefixes only where tokens see those before them",
    "--data-parallel-backend": "ray: each rank of an MLA model stores its own latent",
    "--default-mm-loras": "blocks with such inputs are kept under the adapter's name",
    "--distributed-executor-backend": "not mp: each rank stores an MLA latent of its own; Ray is in no image",
    "--enable-cumem-allocator": "the cache has a pool of its own, without expandable segments",
    "--enable-lora": "blocks are kept under each adapter's name; copies of adapters in host memory",
    "--enable-mamba-shared-prefix-checkpoint": "one state more, where prefixes part",
    "--enable-prefix-caching": "what the tiers hold",
    "--enable-return-routed-experts": "prefixes count only while their experts' choices are kept",
    "--enable-sleep-mode": "each sleep empties the tiers; weights are once more in host memory",
    "--kv-events-config": "events of what is kept, for pickers",
    "--kv-offloading-backend": "the connector",
    "--kv-offloading-size": "the connector and its memory",
    "--kv-transfer-config": "the connector",
    "--long-prefill-token-threshold": "tokens of a step, after which states are kept",
    "--long-prefill-token-threshold-adaptive": "tokens of a step, after which states are kept",
    "--max-num-scheduled-tokens": "tokens of a step, after which states are kept",
    "--mm-hasher-algorithm": "names of images in blocks' keys: all pods need the same",
    "--mm-processor-kwargs": "what an image becomes, but not its name: empty the disk when it changes",
    "--pooler-config": "pooling over all tokens caches no prefixes",
    "--prefix-cache-retention-interval": "how often windows and states are kept",
    "--prefix-caching-hash-algo": "blocks' keys",
    "--prefix-match-unit": "tokens of what is looked up",
    "--scheduler-cls": "a scheduler of somebody's own decides what is looked up and stored",
    "--sleep-mode-backend": "how an engine sleeps",
    "--swa-bounded-replay": "windows that are computed again in place of kept",
    "--weight-transfer-config": "new weights under old keys unless the pause clears caches",
}
_LIFE: Final = {
    "--allowed-local-media-path": "requests may read that folder of the container",
    "--chat-template": "a path names a file of the container",
    "--code-revision": "which code of the repository runs",
    "--config": "more arguments in a file",
    "--config-format": "which configuration is read",
    "--cpu-distributed-timeout-seconds": "how long ranks wait for one another",
    "--data-parallel-address": "where engines of several pods meet",
    "--data-parallel-external-lb": "who balances over engines",
    "--data-parallel-hybrid-lb": "who balances over engines",
    "--data-parallel-multi-port-external-lb": "who balances over engines",
    "--data-parallel-rank": "which engine this is",
    "--data-parallel-rpc-port": "where engines of several pods meet",
    "--data-parallel-size": "how many engines",
    "--data-parallel-size-local": "how many engines of this pod",
    "--data-parallel-start-rank": "which engine this is",
    "--data-parallel-supervisor-port": "with an external load balancer alone",
    "--device-ids": "which of the pod's devices ranks take",
    "--distributed-timeout-seconds": "how long ranks wait for one another",
    "--download-dir": "where weights are downloaded to",
    "--dp-supervisor-probe-failure-threshold": "with an external load balancer alone",
    "--dp-supervisor-probe-interval-s": "with an external load balancer alone",
    "--dp-supervisor-probe-timeout-s": "with an external load balancer alone",
    "--enable-elastic-ep": "engines may come and go while the pod runs",
    "--enable-fault-tolerance": "with an external load balancer alone",
    "--enable-flashinfer-autotune": "a longer first start",
    "--enable-ssl-refresh": "certificates are read again",
    "--fail-on-environ-validation": "a variable VLLM_ that vLLM does not know ends the start",
    "--fault-tolerance-config": "with an external load balancer alone",
    "--generation-config": "bounds of answers",
    "--grpc": "another protocol in place of HTTP",
    "--grpc-port": "one port more",
    "--headless": "no API server",
    "--host": "where the API server listens",
    "--ignore-patterns": "which files are downloaded",
    "--jit-monitor-mode": "error: a kernel that is compiled late ends a step",
    "--log-config-file": "a file that must be there",
    "--logging-config": "a file that must be there",
    "--lora-modules": "adapters that are loaded at start",
    "--master-addr": "where nodes of one engine meet",
    "--master-port": "where nodes of one engine meet",
    "--max-num-queued-reqs": "503 above that many requests",
    "--max-num-queued-tokens": "503 above that many tokens, cached ones included",
    "--middleware": "code that stands before every path, probes' too",
    "--mm-encoder-fp8-scale-path": "a file that must be there",
    "--mm-encoder-fp8-scale-save-path": "a file that is written",
    "--model": "the model",
    "--nnodes": "engines over several nodes",
    "--node-rank": "which node this is",
    "--numa-bind": "a rank's memory is of one NUMA node, which must hold its part of the tier",
    "--numa-bind-cpus": "cores of each rank",
    "--numa-bind-nodes": "NUMA nodes of each rank",
    "--port": "where the API server listens",
    "--profiler-config": "traces in the memory of each process until they are written",
    "--ray-workers-use-nsight": "profiles of Ray's workers",
    "--reasoning-parser-plugin": "a file of code that must be there",
    "--revision": "which revision of the model",
    "--served-model-name": "names that clients ask for",
    "--shutdown-timeout": "how long requests may take to end",
    "--ssl-ca-certs": "a file that must be there",
    "--ssl-cert-reqs": "whether clients must show certificates",
    "--ssl-certfile": "HTTPS in place of HTTP",
    "--ssl-keyfile": "HTTPS in place of HTTP",
    "--tokenizer": "other tokens, so other blocks; pickers that tokenize by the model's name find none",
    "--tokenizer-revision": "other tokens, so other blocks",
    "--tokens-only": "no tokenizer: requests bring tokens",
    "--tool-parser-plugin": "a file of code that must be there",
    "--tool-server": "servers of tools that must answer",
    "--trust-remote-code": "code of the model's repository runs",
    "--uds": "a socket in place of a port",
    "--watchdog-config": "files of processes that hang",
    "--worker-cls": "a worker of somebody's own decides what is allocated",
    "--worker-extension-cls": "code that is mixed into workers",
}
_NOTHING: Final = frozenset(
    """
--additional-config --aggregate-engine-logging --allow-credentials --allow-deprecated-quantization
--allowed-headers --allowed-media-domains --allowed-methods --allowed-origins
--anthropic-disabled-thinking-effort --api-key --chat-template-content-format --cohere-format
--cohere-is-reasoning-model --collect-detailed-traces --cp-kv-cache-interleave-size --cudagraph-metrics
--custom-histogram-buckets --dbo-decode-token-threshold --dbo-prefill-token-threshold --dcp-comm-backend
--dcp-kv-cache-interleave-size --dcp-q-replicate --default-chat-template-kwargs
--disable-access-log-for-endpoints --disable-log-stats --dp-sync-interval --ec-manager-config
--enable-auto-tool-choice --enable-cascade-attn --enable-chunked-mm-input --enable-ep-weight-filter
--enable-fastapi-docs --enable-flash-late-interaction --enable-force-include-usage --enable-hc-sp
--enable-layerwise-nvtx-tracing --enable-log-deltas --enable-log-outputs --enable-log-requests
--enable-logging-iteration-details --enable-mamba-cache-stochastic-rounding --enable-mfu-metrics
--enable-nccl-for-dp-synchronization --enable-offline-docs --enable-per-request-metrics
--enable-prompt-tokens-details --enable-request-id-headers --enable-scale-out
--enable-server-load-tracking --enable-tokenizer-info-endpoint --enable-uvicorn-access-log
--exclude-tools-when-tool-choice-none --expert-placement-strategy --fingerprint-mode --fingerprint-value
--gdn-prefill-backend --h11-max-header-count --h11-max-incomplete-event-size --hf-token
--interleave-mm-strings --io-processor-plugin --ir-op-priority --jit-monitor-verbose --kda-decode-backend
--kda-prefill-backend --kv-cache-metrics --kv-cache-metrics-sample --kv-sharing-fast-prefill
--linear-backend --log-error-stack --log-level --logits-processors --logprobs-mode --mamba-backend
--mamba-cache-philox-rounds --mamba-ssu-algorithm --max-log-len --max-logprobs --max-num-active-seqs
--max-parallel-loading-workers --mm-device-do-normalize --mm-encoder-attn-backend --mm-encoder-attn-dtype
--mm-encoder-fp8-scale-save-margin --monokernel --otlp-traces-endpoint --override-generation-config
--per-request-spec-decode-metrics --prefill-schedule-interval --reasoning-config --reasoning-effort-map
--reasoning-parser --response-role --return-tokens-as-token-ids --root-path --scheduler-reserve-full-isl
--scheduling-policy --seed --show-hidden-metrics-for-version --skip-tokenizer-init
--sparse-indexer-topk-backend --sse-keep-alive-interval --ssl-ciphers --stream-interval --tokenizer-mode
--tool-call-parser --tool-strict-level --trust-request-chat-template --trust-request-mm-kwargs
--use-fp64-gumbel --use-tqdm-on-load --uvicorn-log-level --video-pruning-method --watermark-config
""".split()  # noqa: SIM905 - 114 names, several a line
)
EFFECTS: Final[Mapping[str, Effect]] = {
    option: Effect(option, kind, rule)
    for kind, rules in (
        (EffectKind.HOST_MEMORY, _HOST_MEMORY),
        (EffectKind.DEVICE_MEMORY, _DEVICE_MEMORY),
        (EffectKind.KV_CACHE, _KV_CACHE),
        (EffectKind.TIERS, _TIERS),
        (EffectKind.LIFE, _LIFE),
        (EffectKind.NOTHING, dict.fromkeys(_NOTHING, "")),
    )
    for option, rule in rules.items()
}
"""By option."""
_ALIASES: Final = {**SECOND_NAMES, "--device-memory-utilization": "--gpu-memory-utilization"}
_ON: Final = "--enable-"


def forms_of(option: str) -> tuple[str, ...]:
    """The option's names: on, off, as 0.32 and 0.33 write both."""
    stem = option.removeprefix(_ON) if option.startswith(_ON) else ""
    off = (f"--no-{option.removeprefix('--')}",)
    return (option, *off, *((f"--disable-{stem}", f"--no-disable-{stem}") if stem else ()))


@cache
def _options() -> Mapping[str, str]:
    """Option by every name that it has."""
    return {**{form: option for option in EFFECTS for form in forms_of(option)}, **_ALIASES, **_own_names()}


def _own_names() -> Mapping[str, str]:
    """Options whose own name looks like another's form, such as --disable-log-stats."""
    return {option: option for option in EFFECTS}


def effect_of(argument: Argument) -> Effect | None:
    """What vLLM takes it for does; None where kvtier's table has no such option."""
    options = _options()
    if argument.name in options:
        return EFFECTS[options[argument.name]]
    return next((EFFECTS[option] for form, option in options.items() if argument.means(form)), None)


def effects_of(line: CommandLine) -> Iterator[Effect]:
    """Of every option of a command line that does something, once each, in the order of the table."""
    named = {effect.option for argument in line.arguments if (effect := effect_of(argument))}
    return (
        effect
        for option, effect in EFFECTS.items()
        if option in named and effect.kind is not EffectKind.NOTHING
    )
