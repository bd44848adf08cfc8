"""The one place that touches what vLLM has not promised, and that knows how its minors differ.

Everywhere else the connector imports of vLLM only what others are meant to build on, because vLLM loads their
classes by name:

- `vllm`, `vllm.config`, `vllm.platforms`: what an application imports.
- `vllm.distributed.kv_transfer.kv_connector.v1` and its `base`: the interface of connectors.
- `vllm.v1.kv_offload.base` and `config`, `vllm.v1.kv_offload.tiering.base` and `backpressure`: those of
  offloading specs, managers, workers and secondary tiers.
- What the methods of these take and return: `vllm.forward_context`, `vllm.v1.core.kv_cache_manager`,
  `vllm.v1.core.sched.output`, `vllm.v1.kv_cache_interface`, `vllm.v1.metrics.cache_hit_source`,
  `vllm.v1.outputs`, `vllm.v1.request`.

Each reach is a function or a method that says what for. Where a vLLM has the parts elsewhere, the connector
is refused when it is made, with the names of what is missing, before a request has come.

An engine's arguments are changed in one place, `engine_args.py`, before there is a connector; what it accepts
in `kvtier_connector/embeddings.py`, which is for engines that lack what this package imports, too.

A new minor is an entry in `supported.py`, a look at this package, and a line of
`tests/engine/test_older_vllm.py`.
"""
