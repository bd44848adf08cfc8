import pytest
from tests.cases.kvcachetier import ACCEPTED, Document, document
from tests.cases.refused.refused import REFUSED
from tests.cases.refused.refused_case import Refused
from tests.cases.rules.rule_case import RuleCase
from tests.cases.rules.rules import RULES

from kvtier_operator.api.parse import MOST_SPEC_BYTES, parse_resource, spec_size
from kvtier_operator.api.schema.complaints import FORMS
from kvtier_operator.api.schema.crd import Schema, openapi_schema
from kvtier_operator.errors import InvalidInputError


def _said(resource: object) -> str:
    with pytest.raises(InvalidInputError) as refused:
        parse_resource(resource, "cr.yaml")
    prefix = "cr.yaml: "
    lines = str(refused.value).splitlines()
    assert all(line.startswith(prefix) for line in lines)
    return "\n".join(line.removeprefix(prefix) for line in lines)


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(changes: dict[str, object]) -> None:
    assert parse_resource(document(changes), "cr.yaml").metadata.name == "qwen3-32b"


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refuses_in_plain_words(case: Refused) -> None:
    assert _said(document(case.changes)) == case.said


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.message)
def test_rule_accepts(rule: RuleCase) -> None:
    parse_resource(document(rule.accepted), "cr.yaml")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.message)
def test_rule_refuses_with_the_words_of_admission(rule: RuleCase) -> None:
    said = _said(document(rule.refused))
    if any(words in rule.message for words in ("quantity", "address block")):
        assert said.startswith(f"{rule.field}: ")  # says more than CEL can: what is wrong with which text
    else:
        message = rule.said or rule.message
        assert said == (f"{rule.field}: {message}" if rule.field else message)


def test_a_spec_that_the_operator_would_not_keep() -> None:
    """The API server takes a megabyte and more; the operator does not, and says so only once it is stored."""

    def of(length: int) -> Document:
        # what a character is in UTF-8, and not in JSON's escapes, counts
        return document({"spec.engine.extraArgs": ["é" * 2000] * 16 + ["x" * length]})

    empty = spec_size(parse_resource(of(0), "cr.yaml").spec)
    assert spec_size(parse_resource(of(MOST_SPEC_BYTES - empty), "cr.yaml").spec) == MOST_SPEC_BYTES
    said = _said(of(MOST_SPEC_BYTES - empty + 1))
    assert said.startswith("spec: 65,537 bytes as JSON, 65,536 at most: ")


def test_every_rule_has_a_case() -> None:
    def messages(node: Schema) -> set[str]:
        own = {
            rule["message"]
            for rule in node.get("x-kubernetes-validations", ())
            if "oldSelf" not in rule["rule"]
        }
        below = [*node.get("properties", {}).values(), node.get("items"), node.get("additionalProperties")]
        return own.union(*(messages(each) for each in below if each))

    assert messages(openapi_schema()) == {rule.message for rule in RULES}


def test_every_form_has_words() -> None:
    def patterns(node: Schema) -> set[str]:
        below = [*node.get("properties", {}).values(), node.get("items"), node.get("additionalProperties")]
        own = {node["pattern"]} if "pattern" in node else set()
        return own.union(*(patterns(each) for each in below if isinstance(each, dict)))

    assert patterns(openapi_schema()["properties"]["spec"]) == {*FORMS}


@pytest.mark.parametrize(
    "image",
    [
        "vllm",
        "vllm/vllm-openai:v0.32.0",
        "localhost:5000/team__a/b-c.d:1",
        "[2001:db8::1]:5000/a",
        f"a/b@sha256:{'0' * 64}",
        f"ghcr.io/a/b:1.2_3-x@sha256:{'0' * 64}",
    ],
)
def test_names_of_images(image: str) -> None:
    assert parse_resource(document({"spec.engine.image": image}), "cr.yaml").spec.engine.image == image


@pytest.mark.parametrize("resource", [None, [], "text", 4], ids=repr)
def test_what_is_no_object(resource: object) -> None:
    assert _said(resource) == "not a KVCacheTier: expected apiVersion, kind, metadata and spec"


def test_another_kind() -> None:
    assert _said(document({"kind": "KVCacheTeir"})) == "kind: 'KVCacheTeir' is not KVCacheTier"


def test_no_version() -> None:
    said = _said(document({"apiVersion": None}))
    assert said == "apiVersion: is required: write kvtier.dev/v1alpha1"


@pytest.mark.parametrize("was", ["Off", False])
def test_a_policy_by_its_former_word(was: object) -> None:
    resource = parse_resource(document({"spec.tiers.cpu.hugepages.policy": was}), "cr.yaml")
    assert resource.spec.tiers.cpu.hugepages.policy == "Never"
    assert resource.manifest()["spec"]["tiers"]["cpu"]["hugepages"] == {"policy": "Never"}


def test_a_device_by_its_former_word() -> None:
    resource = parse_resource(document({"spec.engine.device": "cuda"}), "cr.yaml")
    assert resource.spec.engine.device == "gpu"


def test_a_document_that_contains_itself() -> None:
    resource = document({})
    resource["spec"]["engine"] = {"affinity": resource}
    assert _said(resource).endswith("nested too deeply or too large for a resource")


def test_a_few_lines_that_are_millions_of_values() -> None:
    many: object = "x"
    for _ in range(20):
        many = [many] * 10
    assert _said(document({"spec.engine.affinity": {"a": many}})).endswith("too large for a resource")


def test_a_zero_character_which_no_process_can_be_given() -> None:
    said = _said(document({"spec.engine.extraArgs": ["--seed", "1\0"], "spec.model.revision": r"\u0000"}))
    assert (
        said == "spec.engine.extraArgs[1]: has a zero character, which no path or argument takes; remove it"
    )


def test_what_json_cannot_say() -> None:
    assert _said(document({"spec.model.name": b"x"})).startswith("cannot be read as JSON")


def test_status_of_a_newer_version_does_not_matter() -> None:
    resource = parse_resource(document({"status": {"observedGeneration": 3, "newer": {"x": 1}}}), "cr.yaml")
    assert resource.status
    assert resource.status.observed_generation == 3


@pytest.mark.parametrize("of", ["engine", "router"])
def test_what_every_node_is_asked_has_a_bound(of: str) -> None:
    def changes(*terms: object) -> dict[str, object]:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
        return {f"spec.{of}.affinity": {"nodeAffinity": required}}

    one = {"key": "zone", "operator": "In", "values": ["a"]}
    full = {"matchExpressions": [one] * 40, "matchFields": [one] * 24}
    assert parse_resource(document(changes(full)), "cr.yaml")
    for more in ({}, {"matchExpressions": [one]}):
        said = _said(document(changes(full, more)))
        assert said == (
            f"spec.{of}.affinity: nodeAffinity requires 65 things of nodes in all its terms, 64 at most: put "
            "several names into the values of one, or label the nodes"
        )
    for shapeless in (
        None,
        "x",
        [1],
        {"nodeSelectorTerms": 1},
        {"nodeSelectorTerms": [1, {"matchFields": 1}]},
    ):
        required = {"requiredDuringSchedulingIgnoredDuringExecution": shapeless}
        assert parse_resource(document({f"spec.{of}.affinity": {"nodeAffinity": required}}), "cr.yaml")
