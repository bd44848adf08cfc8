"""The CEL rules of spec.model: for each one something that it accepts and something that it refuses."""

from typing import Final

from tests.cases.rules.rule_case import RuleCase

_GEOMETRY: Final = "spec.model.geometry"
MODEL_RULES: Final = (
    RuleCase(
        "an adapter has the name of the model, so that nobody could ask for one of them; give it another",
        "spec.model.loraModules",
        {
            "spec.model.servedNames": ["chat"],
            "spec.model.loraModules": [{"name": "Qwen/Qwen3-32B", "source": "org/sql"}],
        },
        {"spec.model.loraModules": [{"name": "Qwen/Qwen3-32B", "source": "org/sql"}]},
    ),
    RuleCase(
        "geometry says what configRef would tell; give one of them",
        "spec.model",
        {"spec.model.configRef": {"name": "my-model"}},
        {"spec.model.configRef": {"name": "my-model"}, "spec.model.geometry": {"kvBytesPerToken": 1}},
    ),
    RuleCase(
        "give either kvBytesPerToken alone, or layers with the shape of one layer",
        _GEOMETRY,
        {_GEOMETRY: {"kvBytesPerToken": 262144}},
        {_GEOMETRY: {"kvHeads": 8, "headDim": 128}},
    ),
    RuleCase(
        "layers needs kvHeads and headDim (attention with KV heads) or kvLoraRank (MLA)",
        _GEOMETRY,
        {_GEOMETRY: {"layers": 61, "kvLoraRank": 512, "qkRopeHeadDim": 64}},
        {_GEOMETRY: {"layers": 61, "kvHeads": 8}},
    ),
    RuleCase(
        "kvBytesPerToken already holds every layer; leave the shape of the layers out",
        _GEOMETRY,
        {_GEOMETRY: {"kvBytesPerToken": 262144, "dtypeBytes": 2}},
        {_GEOMETRY: {"kvBytesPerToken": 262144, "kvHeads": 8}},
    ),
    RuleCase(
        "kvLoraRank (MLA) stands in place of kvHeads, headDim and valueHeadDim: give one or the other",
        _GEOMETRY,
        {_GEOMETRY: {"layers": 61, "kvLoraRank": 512}},
        {_GEOMETRY: {"layers": 61, "kvLoraRank": 512, "headDim": 128}},
    ),
    RuleCase(
        "qkRopeHeadDim belongs to MLA models: give kvLoraRank with it",
        f"{_GEOMETRY}.qkRopeHeadDim",
        {_GEOMETRY: {"layers": 61, "kvLoraRank": 512, "qkRopeHeadDim": 0}},
        {_GEOMETRY: {"layers": 61, "kvHeads": 8, "headDim": 128, "qkRopeHeadDim": 64}},
    ),
    RuleCase(
        "slidingWindow and slidingWindowLayers go together",
        _GEOMETRY,
        {
            _GEOMETRY: {
                "layers": 4,
                "kvHeads": 8,
                "headDim": 64,
                "slidingWindow": 128,
                "slidingWindowLayers": 2,
            }
        },
        {_GEOMETRY: {"layers": 4, "kvHeads": 8, "headDim": 64, "slidingWindow": 128}},
    ),
    RuleCase(
        "slidingWindowLayers counts some of layers, so it cannot be more than layers",
        f"{_GEOMETRY}.slidingWindowLayers",
        {
            _GEOMETRY: {
                "layers": 4,
                "kvHeads": 8,
                "headDim": 64,
                "slidingWindow": 128,
                "slidingWindowLayers": 4,
            }
        },
        {
            _GEOMETRY: {
                "layers": 4,
                "kvHeads": 8,
                "headDim": 64,
                "slidingWindow": 128,
                "slidingWindowLayers": 5,
            }
        },
    ),
    RuleCase(
        "linearLayers and stateBytesPerLayer go together",
        _GEOMETRY,
        {
            _GEOMETRY: {
                "layers": 4,
                "kvHeads": 8,
                "headDim": 64,
                "linearLayers": 8,
                "stateBytesPerLayer": 4096,
            }
        },
        {_GEOMETRY: {"layers": 4, "kvHeads": 8, "headDim": 64, "linearLayers": 8}},
    ),
    RuleCase(
        "write pvc://CLAIM or pvc://CLAIM/FOLDER: the name of a claim, and a path without ., .. and $",
        "spec.model.source",
        {"spec.model.source": "pvc://my.models/a/..b/.c"},
        {"spec.model.source": "pvc://models/../b"},
    ),
    RuleCase(
        "write pvc://CLAIM or pvc://CLAIM/FOLDER: the name of a claim, and a path without ., .. and $",
        "spec.model.source",
        {"spec.model.source": "pvc://models"},
        {"spec.model.source": "pvc://models/$(HOME)"},
    ),
    RuleCase(
        "write oci://IMAGE or oci://IMAGE#FOLDER, such as oci://registry.example/models/qwen3:1#models/qwen3",
        "spec.model.source",
        {"spec.model.source": "oci://r.example:5000/models/qwen3:1#models/qwen3"},
        {"spec.model.source": "oci://r.example/qwen3:1#../qwen3"},
    ),
    RuleCase(
        "write oci://IMAGE or oci://IMAGE#FOLDER, such as oci://registry.example/models/qwen3:1#models/qwen3",
        "spec.model.source",
        {"spec.model.source": "oci://team/qwen3_1.5--a"},
        {"spec.model.source": "oci://r.example/../qwen3"},
    ),
    RuleCase(
        "write file:///FOLDER, the folder's whole path on the node, without ., .. and $",
        "spec.model.source",
        {"spec.model.source": "file:///srv/models/qwen3"},
        {"spec.model.source": "file:///srv/../etc"},
    ),
    RuleCase(
        "write file:///FOLDER, the folder's whole path on the node, without ., .. and $",
        "spec.model.source",
        {"spec.model.source": "file:///srv"},
        {"spec.model.source": "file:///"},
    ),
    RuleCase(
        "the Hub is where name comes from without a source: leave it out",
        "spec.model.source",
        {},
        {"spec.model.source": "hf://Qwen/Qwen3-32B"},
    ),
    RuleCase(
        "Kubernetes mounts pvc://, oci:// and file:// alone: give a fetcher that brings this, "
        "or write s3://, gs:// or az:// into name for vLLM to stream it, with --load-format runai_streamer "
        "in spec.engine.extraArgs",
        "spec.model.source",
        {"spec.model.source": "s3://b/m", "spec.model.fetcher": {"image": "a/fetch:1"}},
        {"spec.model.source": "s3://b/m"},
    ),
    RuleCase(
        "a fetcher brings what source names, such as s3://BUCKET/FOLDER, and nothing that is mounted",
        "spec.model.fetcher",
        {"spec.model.source": "s3://b/m", "spec.model.fetcher": {"image": "a/fetch:1"}},
        {"spec.model.fetcher": {"image": "a/fetch:1"}},
    ),
    RuleCase(
        "a fetcher brings what source names, such as s3://BUCKET/FOLDER, and nothing that is mounted",
        "spec.model.fetcher",
        {
            "spec.model.source": "s3://b/m",
            "spec.model.fetcher": {"image": "a/fetch:1"},
            "spec.model.volume": {"emptyDir": {}},
        },
        {"spec.model.source": "pvc://models", "spec.model.fetcher": {"image": "a/fetch:1"}},
    ),
    RuleCase(
        "source is a volume of its own, which nothing is downloaded to: leave volume out",
        "spec.model.volume",
        {"spec.model.volume": {"emptyDir": {}}},
        {"spec.model.source": "pvc://models", "spec.model.volume": {"emptyDir": {}}},
    ),
    RuleCase(
        "revision is of the Hub, and source names another place: leave one of them out",
        "spec.model.revision",
        {"spec.model.revision": "main"},
        {"spec.model.source": "pvc://models", "spec.model.revision": "main"},
    ),
    *(
        RuleCase(
            "name is no URL: write the id alone, ORG/MODEL; where weights come from is source's to say, but "
            "for s3://, gs:// and az://, which vLLM streams",
            "spec.model.name",
            {"spec.model.name": f"{bucket}://bucket/qwen"},
            {"spec.model.name": url},
            said,
        )
        for bucket, url, said in (
            ("s3", "https://huggingface.co/Qwen/Qwen3-8B/tree/main", "name is no URL: write Qwen/Qwen3-8B"),
            ("gs", "hf://a/b", "name is no URL: write a/b"),
            ("az", "pvc://models/qwen", ""),
        )
    ),
    *(
        RuleCase(
            "name has no . or .. between slashes and none of \\ ? # % or control characters; write the id, "
            "or the folder's whole path",
            "spec.model.name",
            {"spec.model.name": "/models/.hidden/a..b/Qwen 3"},
            {"spec.model.name": name},
        )
        for name in (
            "../qwen",
            "team/..",
            "team/.",
            "/models/../x",
            "a\\..\\b",
            "team/%2e%2e",
            "a/b?c",
            "a/b#c",
            "a\nb",
        )
    ),
    RuleCase(
        "name is a folder already: with a source write what the model is called, such as Qwen/Qwen3-32B",
        "spec.model.name",
        {"spec.model.name": "/models/qwen3"},
        {"spec.model.name": "/models/qwen3", "spec.model.source": "pvc://models"},
    ),
    RuleCase(
        "give value or valueFrom, not both",
        "spec.model.fetcher.env[0]",
        {
            "spec.model.source": "s3://b/m",
            "spec.model.fetcher": {"image": "a/b", "env": [{"name": "A", "value": "b"}]},
        },
        {
            "spec.model.source": "s3://b/m",
            "spec.model.fetcher": {
                "image": "a/b",
                "env": [{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}],
            },
        },
    ),
    RuleCase(
        "LMCACHE_USE_EXPERIMENTAL does nothing: LMCache and vLLM removed it; leave it out",
        "spec.model.fetcher.env[0].name",
        {"spec.model.source": "s3://b/m", "spec.model.fetcher": {"image": "a/b", "env": [{"name": "A"}]}},
        {
            "spec.model.source": "s3://b/m",
            "spec.model.fetcher": {
                "image": "a/b",
                "env": [{"name": "LMCACHE_USE_EXPERIMENTAL", "value": "1"}],
            },
        },
    ),
)
