"""What cosign is given, and its faults in one line. A stand-in: the real one asks public services."""

import os
import shlex
import shutil
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.harness.images.registry import Registry
from tests.release.command import Release

Publish = Callable[..., subprocess.CompletedProcess[str]]
NO_TUF = 'error getting signing config from TUF: Get "https://tuf-repo-cdn.sigstore.dev/15.root.json"'


@pytest.fixture
def cosign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a cosign on the path that does some shell lines, and returns the file with what it was given."""

    def having(does: str) -> Path:
        folder = tmp_path / "programs"
        folder.mkdir()
        typed, stand_in = folder / "typed", folder / "cosign"
        stand_in.write_text(f'#!/bin/sh\necho "$@" >>{typed}\n{does}\n')
        stand_in.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return typed

    return having


@pytest.fixture
def publish(release: Release, registry: Registry, dist: Path, tmp_path: Path) -> Publish:
    """Publishes a copy, since what names another registry is written anew, below some path."""

    def run(below: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        shutil.copytree(dist, tmp_path / "dist")
        at = ("--registry", f"{registry.name}/{below}", "--dist", tmp_path / "dist")
        return release("publish", *at, "--key", "my.key", *arguments)

    return run


def failing(command: str, error: str, before: str = "") -> str:
    """Shell lines by which a command fails as cosign 3.1.3 does."""
    said = (before, f"Error: {error}", f"error during command execution: {error}")
    lines = "".join(f"echo {shlex.quote(each)} >&2; " for each in said if each)
    return f'if [ "$1" = {command} ]; then {lines}exit 1; fi'


def test_with_a_key_everything_is_signed_by_its_digest(
    publish: Publish, cosign: Callable[[str], Path]
) -> None:
    typed = cosign("")
    done = publish("signed", "--cosign", "--annotations=a=b")
    assert not done.returncode, done.stderr
    start = "sign --yes --key my.key --allow-http-registry --annotations=a=b "
    published = [line.rpartition("@") for line in done.stdout.splitlines()]
    signed = [f"{start}{tagged.rpartition(':')[0]}@{digest}" for tagged, _, digest in published]
    assert typed.read_text().splitlines() == ["public-key --key my.key", *signed]


@pytest.mark.parametrize(
    ("error", "what_to_do"),
    [
        ("open my.key: no such file or directory", ""),
        ("decrypt: encrypted: decryption failed", ": set COSIGN_PASSWORD to the key's password"),
    ],
)
def test_with_a_key_that_cannot_be_used_nothing_is_pushed(
    publish: Publish, cosign: Callable[[str], Path], registry: Registry, error: str, what_to_do: str
) -> None:
    cosign(failing("public-key", error))
    done = publish("unsigned")
    assert done.returncode == 1
    assert done.stderr == f"release: --key my.key: cosign public-key: Error: {error}{what_to_do}\n"
    with urllib.request.urlopen(f"http://{registry.name}/v2/_catalog", timeout=10) as answer:
        assert b"unsigned/" not in answer.read()


def test_a_key_without_a_password_needs_no_variable(
    publish: Publish, cosign: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COSIGN_PASSWORD", raising=False)
    cosign(f'[ -n "${{COSIGN_PASSWORD+set}}" ] || {failing("$1", "inappropriate ioctl for device")}')
    done = publish("no-password")
    assert not done.returncode, done.stderr


def test_where_the_public_services_are_out_of_reach_it_says_how_to_do_without(
    publish: Publish, cosign: Callable[[str], Path]
) -> None:
    cosign(failing("sign", NO_TUF, "WARNING: Could not fetch trusted_root.json from the TUF repository."))
    done = publish("no-services")
    assert done.returncode == 1
    assert done.stderr == (
        f"release: cosign sign: Error: {NO_TUF}; to sign without the public services: "
        "--cosign=--use-signing-config=false --cosign=--tlog-upload=false\n"
    )
