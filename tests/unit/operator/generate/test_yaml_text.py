import yaml

from kvtier_operator.generate.yaml_text import Below, Inline, With, yaml_text


def test_text_behind_a_key_and_below_it() -> None:
    written = yaml_text(
        {"a": {"b": 1, "c": [{"d": 2, "e": 3}]}},
        {"a b": Inline("{{ $.b }}"), "a c 0 e": Below("# why\n- {indent}"), "a f": With("$.f")},
    )
    assert written == (
        "a:\n"
        "  b: {{ $.b }}\n"
        "  c:\n"
        "    - d: 2\n"
        "      e:\n"
        "        # why\n"
        "        - 8\n"
        "  {{- with $.f }}\n"
        "  f:\n"
        "    {{- toYaml . | nindent 4 }}\n"
        "  {{- end }}\n"
    )


def test_the_first_key_of_an_item() -> None:
    assert yaml_text({"a": [{"b": 1}]}, {"a 0 b": Inline("x")}) == "a:\n  - b: x\n"


def test_the_object_stays_as_it_was_and_nothing_is_an_alias() -> None:
    shared = [1]
    document = {"a": shared, "b": shared}
    text = yaml_text(document, {"a": Inline("[]")})
    assert document == {"a": [1], "b": [1]}
    assert yaml.safe_load(text) == {"a": [], "b": [1]}
    assert "&" not in yaml_text(document)


def test_lines_are_a_block() -> None:
    text = yaml_text({"a": {"b": '{\n "c": "{{d}}"\n}\n'}})
    assert text == 'a:\n  b: |\n    {\n     "c": "{{d}}"\n    }\n'
