"""Where the weights of `spec.model` come from, and where pods have them."""

import re
from typing import Annotated, Final

from pydantic import Field

from kvtier_operator.api.base import VALIDATIONS, ApiModel, cel_validation, rule
from kvtier_operator.api.formats import IMAGE_NAME_PATTERN, SUBDOMAIN
from kvtier_operator.api.spec.pod import EnvVar, Volume

CLAIM: Final = "pvc://"
IMAGE: Final = "oci://"
NODE: Final = "file://"
HUB: Final = "hf://"
_SHARED: Final = (CLAIM, IMAGE)
"""What is the same files for every pod, with the same times."""
MOUNTED: Final = (CLAIM, IMAGE, NODE)
"""What Kubernetes mounts by itself; anything else is the fetcher's to bring."""
SOURCE_PATTERN: Final = r"^[a-z][a-z0-9+.-]*://[^\s]+$"
_FOLDER: Final = r"([^\s/.#$][^\s/#$]*|\.[^\s/.#$][^\s/#$]*|\.\.[^\s/#$]+)"
"""A name that is neither `.` nor `..`, by which a path could leave the volume, and holds no `$`: Kubernetes would
put a variable's value in place of `$(NAME)` in the engine's arguments."""
_PATH: Final = f"{_FOLDER}(/{_FOLDER})*"
_REPOSITORY: Final = r"[a-z0-9]+([._-]+[a-z0-9]+)*"
_REFERENCE: Final = (
    rf"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?/)?{_REPOSITORY}(/{_REPOSITORY})*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@sha256:[0-9a-f]{64})?"
)
"""github.com/distribution/reference: a registry, folders in lower case, a tag, a digest."""
CLAIM_PATTERN: Final = f"^{CLAIM}{SUBDOMAIN}(/{_PATH})?$"
IMAGE_PATTERN: Final = f"^{IMAGE}{_REFERENCE}(#{_PATH})?$"
NODE_PATTERN: Final = f"^{NODE}/{_PATH}$"
_REF: Final = "[A-Za-z0-9_][A-Za-z0-9._+@=-]*"
REVISION_PATTERN: Final = f"^{_REF}(/{_REF})*$"
"""Of the names that git takes (git-check-ref-format) those that are the same in a URL."""
_NO_NAME: Final = r"(^|/)[.][.]?(/|$)|[\x00-\x1f\x7f\\?#%]"
"""What would be another place in a URL: `.` and `..` as parts, and what cuts it or stands for other characters."""


class Fetcher(ApiModel):
    """A container that brings the model before the engine starts, as KServe's storage initializer does."""

    image: str = Field(
        description="Image of the container.", min_length=1, max_length=512, pattern=IMAGE_NAME_PATTERN
    )
    command: list[Annotated[str, Field(max_length=4096)]] = Field(
        default_factory=list,
        description="Its command; the image's own when empty.",
        max_length=128,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    args: list[Annotated[str, Field(max_length=4096)]] = Field(
        default_factory=list,
        description="Its arguments, with $(MODEL_SOURCE) for source and $(MODEL_DIR) for the folder to put the model into. Empty, where command is too: these two.",
        max_length=128,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    env: list[EnvVar] = Field(
        default_factory=list,
        description="Environment variables of the container, such as credentials from a Secret.",
        max_length=128,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )


def _any_of(starts: tuple[str, ...]) -> str:
    """CEL: whether a source begins with one of them."""
    return " || ".join(f"self.source.startsWith('{start}')" for start in starts)


def _form(start: str, pattern: str) -> str:
    """CEL: whether a source that begins so has the form that belongs to it."""
    return f"!has(self.source) || !self.source.startsWith('{start}') || self.source.matches(r'{pattern}')"


def _has_form(source: str | None, start: str, pattern: str) -> bool:
    return source is None or not source.startswith(start) or re.fullmatch(pattern, source) is not None


_NO_URL: Final = "name is no URL: write the id alone, ORG/MODEL; where weights come from is source's to say, but for s3://, gs:// and az://, which vLLM streams"
_ON_THE_HUB: Final = re.compile(
    r"(?:hf://|https?://(?:www\.)?(?:huggingface\.co|hf\.co)/)([^/]+/[^/]+)(?:/.*)?"
)


def _id_in_url(name: str) -> str:
    """What is said of a name that is a URL: of the Hub's, the id that is in it."""
    match = _ON_THE_HUB.fullmatch(name)
    return f"name is no URL: write {match[1]}" if match else _NO_URL


class SourcedModel(ApiModel):
    """A model by its name, and its weights."""

    name: str = Field(
        description="Model as vLLM takes it: a Hugging Face id such as Qwen/Qwen3-32B, a folder in the engine's image, in spec.model.volume or on this machine, or a bucket's s3://, gs:// or az://, whose weights vLLM streams. Clients call it so, wherever source has it from.",
        min_length=1,
        max_length=512,
        json_schema_extra={
            VALIDATIONS: [
                cel_validation(
                    "self == oldSelf", "model.name is immutable; make a new KVCacheTier for another model"
                )
            ]
        },
    )
    revision: str | None = Field(
        None,
        description="Branch, tag or commit of the model's repository.",
        min_length=1,
        max_length=256,
        pattern=REVISION_PATTERN,
    )
    source: str | None = Field(
        None,
        description="Where the weights come from. Empty: the Hub. pvc://CLAIM/FOLDER is a folder of a claim, oci://IMAGE#FOLDER one of an image, which Kubernetes mounts, file:///FOLDER one of the node; all are only read. Anything else, such as s3://BUCKET/FOLDER, is what fetcher brings. A local run takes this machine's own cache, or the folder of file://.",
        min_length=1,
        max_length=1024,
        pattern=SOURCE_PATTERN,
    )
    fetcher: Fetcher | None = Field(
        None,
        description="Container that puts what source names into spec.model.volume, before each start of an engine.",
    )
    volume: Volume | None = Field(
        None,
        description="Where pods keep the weights that they download (HF_HOME) or that the fetcher brings. Empty: an emptyDir, so each pod gets them anew. A local run takes this machine's own cache.",
    )

    @rule(
        _form(CLAIM, CLAIM_PATTERN),
        "write pvc://CLAIM or pvc://CLAIM/FOLDER: the name of a claim, and a path without ., .. and $",
        field=".source",
    )
    def claim_is_one(self) -> bool:
        """A folder outside of the claim would be the container's own."""
        return _has_form(self.source, CLAIM, CLAIM_PATTERN)

    @rule(
        _form(IMAGE, IMAGE_PATTERN),
        "write oci://IMAGE or oci://IMAGE#FOLDER, such as oci://registry.example/models/qwen3:1#models/qwen3",
        field=".source",
    )
    def image_is_one(self) -> bool:
        """As of a pod's image volume."""
        return _has_form(self.source, IMAGE, IMAGE_PATTERN)

    @rule(
        _form(NODE, NODE_PATTERN),
        "write file:///FOLDER, the folder's whole path on the node, without ., .. and $",
        field=".source",
    )
    def folder_is_one(self) -> bool:
        """As of a pod's hostPath."""
        return _has_form(self.source, NODE, NODE_PATTERN)

    @rule(
        f"!has(self.source) || !self.source.startsWith('{HUB}')",
        "the Hub is where name comes from without a source: leave it out",
        field=".source",
    )
    def hub_is_the_default(self) -> bool:
        """What is planned is of `name`, so no other repository can be served by it."""
        return self.source is None or not self.source.startswith(HUB)

    @rule(
        f"!has(self.source) || {_any_of((*MOUNTED, HUB))} || has(self.fetcher)",
        "Kubernetes mounts pvc://, oci:// and file:// alone: give a fetcher that brings this, or write s3://, gs:// or az:// into name for vLLM to stream it, with --load-format runai_streamer in spec.engine.extraArgs",
        field=".source",
    )
    def somebody_brings_it(self) -> bool:
        """Kvtier downloads nothing."""
        return self.source is None or self.source.startswith((*MOUNTED, HUB)) or self.fetcher is not None

    @rule(
        f"!has(self.fetcher) || (has(self.source) && !({_any_of(MOUNTED)}))",
        "a fetcher brings what source names, such as s3://BUCKET/FOLDER, and nothing that is mounted",
        field=".fetcher",
    )
    def fetcher_has_something_to_bring(self) -> bool:
        """Nothing that is written has no effect."""
        return self.fetcher is None or (self.source is not None and not self.source.startswith(MOUNTED))

    @rule(
        "!has(self.volume) || !has(self.source) || has(self.fetcher)",
        "source is a volume of its own, which nothing is downloaded to: leave volume out",
        field=".volume",
    )
    def source_is_a_volume(self) -> bool:
        """Nothing that is written has no effect."""
        return self.volume is None or self.source is None or self.fetcher is not None

    @rule(
        "!has(self.revision) || !has(self.source)",
        "revision is of the Hub, and source names another place: leave one of them out",
        field=".revision",
    )
    def revision_is_of_the_hub(self) -> bool:
        """Nothing that is written has no effect."""
        return self.revision is None or self.source is None

    @rule(
        "!self.name.contains('://') || self.name.matches('^(s3|gs|az)://')",
        _NO_URL,
        field=".name",
        said_of=lambda model: _id_in_url(model.name),
    )
    def name_is_no_page(self) -> bool:
        """What a browser shows, or another tool's file, is the first thing to copy."""
        return "://" not in self.name or self.name.startswith(("s3://", "gs://", "az://"))

    @rule(
        f"!self.name.matches(r'{_NO_NAME}')",
        "name has no . or .. between slashes and none of \\ ? # % or control characters; write the id, or the folder's whole path",
        field=".name",
    )
    def name_stays_where_it_is(self) -> bool:
        """It is a part of a URL, and of paths."""
        return re.search(_NO_NAME, self.name) is None

    @rule(
        "!has(self.source) || !self.name.startsWith('/')",
        "name is a folder already: with a source write what the model is called, such as Qwen/Qwen3-32B",
        field=".name",
    )
    def one_folder(self) -> bool:
        """Two answers to one question can differ."""
        return self.source is None or not self.name.startswith("/")

    @property
    def is_copied(self) -> bool:
        """Whether pods, or nodes, have copies of the weights that only their content shows to be the same."""
        return self.source is not None and not self.source.startswith(_SHARED)
