import pytest

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.base.owner_policy import OwnerPolicy, policy_document, policy_of_text


def test_all_is_allowed_until_somebody_says_otherwise() -> None:
    assert policy_of_text("{}", "x") == OwnerPolicy()
    assert set(policy_document(OwnerPolicy()).values()) == {"allow"}


def test_limits() -> None:
    text = '{"hostPath": "deny", "images": ["a/", "a/b"], "rootEngines": "deny", "hostNames": []}'
    assert policy_of_text(text, "x") == OwnerPolicy("deny", "deny", images=("a/", "a/b"), host_names=())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x: cannot be read as JSON: Expecting value: line 1 column 1 (char 0); it is ''"),
        ("zz", "x: cannot be read as JSON: Expecting value: line 1 column 1 (char 0); it is 'zz'"),
        ("[" * 100_000, "x: cannot be read as JSON: "),
        ("null", "x: not a mapping with any of hostPath"),
        ("[]", "x: not a mapping with any of hostPath"),
        ("[1]", "x: not a mapping with any of hostPath"),
        (
            '{"hostPath": "deny", "hostPath": "allow"}',
            "x: cannot be read as JSON: the key 'hostPath' is there twice",
        ),
        ('{"hostpath": "deny"}', "x: hostpath: unknown limit; there are hostPath"),
        (
            '{"hostPath": "never"}',
            "x: hostPath: write allow, deny or a list of what is allowed; it is 'never'",
        ),
        ('{"hostPath": null}', "x: hostPath: write allow, deny or a list of what is allowed; it is None"),
        ('{"hostPath": ["/mnt", "/mnt/a"]}', "x: hostPath: /mnt/a is below /mnt, in which"),
        ('{"hostPath": ["/a/", "/"]}', "x: hostPath: /a/ is below /, in which"),
        ('{"ipcLock": ["a"]}', "x: ipcLock: write allow or deny; it is ['a']"),
        ('{"rootEngines": false}', "x: rootEngines: write allow or deny; it is False"),
    ],
)
def test_what_is_wrong_is_one_line(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        policy_of_text(text, "x")
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


def test_an_empty_file_is_called_empty() -> None:
    with pytest.raises(InvalidInputError, match=r"write \{\} for no limit; it is empty$"):
        policy_of_text("null", "x")


def test_every_wrong_entry_has_its_line() -> None:
    with pytest.raises(InvalidInputError) as error:
        policy_of_text('{"hostPath": ["/mnt", "relative/x", 1], "hostNames": ["A.b"]}', "x")
    assert str(error.value).splitlines() == [
        "x: hostPath[1]: write a folder's whole path such as /mnt/nvme0; it is 'relative/x'",
        "x: hostPath[2]: write a folder's whole path such as /mnt/nvme0; it is 1",
        "x: hostNames[0]: write a host name such as llm.example.com or *.team.example.com; it is 'A.b'",
    ]
