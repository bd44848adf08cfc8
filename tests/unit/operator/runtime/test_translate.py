from pathlib import Path

import pytest

from kvtier_common.one_line import shell_line
from kvtier_operator.planning.base.container_parts import ConfigFile, EnginePlan, Mount, Sidecar
from kvtier_operator.runtime.session import discard, materialise
from kvtier_operator.runtime.translate import Placement, to_local, without_tier

FOLDER = Path("/run/here")
TRANSFER = '{"kv_connector":"X","root_dir":"/var/lib/kvtier/disk/0/native"}'


def engine(**changes: object) -> EnginePlan:
    fields: dict[str, object] = {
        "image": "vllm/vllm-openai",
        "args": (
            *("org/model", "--served-model-name", "org/model", "--port", "8000"),
            *("--block-size", "16", "--kv-transfer-config", TRANSFER, "--enforce-eager"),
        ),
        "env": {"PYTHONHASHSEED": "0", "CONFIG": "/etc/kvtier/lmcache.yaml"},
        "env_from_resource": ({"name": "HF_TOKEN", "valueFrom": {}},),
        "files": (ConfigFile("/etc/kvtier/lmcache.yaml", "local_disk: /var/lib/kvtier/disk/0\n"),),
        "mounts": (
            Mount("kv-disk-0", "/var/lib/kvtier/disk/0", {"emptyDir": {}}),
            Mount("shm", "/dev/shm", {"emptyDir": {"medium": "Memory"}}),  # noqa: S108 - as in a pod
        ),
        "sidecars": (),
        "port": 8000,
    }
    return EnginePlan(**fields | changes)  # type: ignore[arg-type]


def place(**changes: object) -> Placement:
    fields: dict[str, object] = {"name": "engine-0", "host": "127.0.0.1", "port": 4321, "folder": FOLDER}
    return Placement(**fields | changes)  # type: ignore[arg-type]


def test_only_program_model_address_and_folders_differ_from_the_plan() -> None:
    local = to_local(engine(), place(model=Path("/models/m")), program=("vllm", "serve"))
    assert local.engine.argv == (
        *("vllm", "serve", "--model", "/models/m", "--host", "127.0.0.1"),
        *("--served-model-name", "org/model", "--port", "4321", "--block-size", "16", "--kv-transfer-config"),
        '{"kv_connector":"X","root_dir":"/run/here/volumes/kv-disk-0/native"}',
        "--enforce-eager",
    )
    assert local.url == "http://127.0.0.1:4321"


def test_variables_of_engines_come_from_the_plan_alone() -> None:
    command = to_local(engine(), place()).engine
    inherited = {
        "PATH": "/bin",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "LMCACHE_CHUNK_SIZE": "16",
        "PYTHONHASHSEED": "7",
    }
    environment = command.environment(inherited)
    assert environment == {"PATH": "/bin"} | dict(command.env)
    assert environment["PYTHONHASHSEED"] == "0"


def test_without_a_local_model_the_plans_is_taken_and_the_hub_may_be_asked() -> None:
    local = to_local(engine(), place())
    assert "org/model" in local.engine.argv[local.engine.argv.index("--model") :]
    assert "HF_HUB_OFFLINE" not in local.engine.env


def test_files_lie_in_the_replicas_folder_and_name_its_folders() -> None:
    local = to_local(engine(), place())
    path = FOLDER / "files/etc/kvtier/lmcache.yaml"
    assert local.files == {path: "local_disk: /run/here/volumes/kv-disk-0\n"}
    assert local.engine.env["CONFIG"] == str(path)
    assert local.folders == (FOLDER / "volumes/kv-disk-0",)


def test_a_file_below_a_volume_lies_in_that_volume() -> None:
    local = to_local(engine(files=(ConfigFile("/var/lib/kvtier/disk/0/a.yaml", ""),)), place())
    assert list(local.files) == [FOLDER / "volumes/kv-disk-0/a.yaml"]


def test_prefixes_lie_where_the_engine_looks_for_them_and_are_left_as_they_are() -> None:
    folder = "/etc/kvtier/prefixes"
    text = '{"text": "see /etc/kvtier/prefixes"}'
    one = engine(
        env={"KVTIER_PREFIXES": folder},
        folders=(Mount("prefixes", folder, {"projected": {"sources": []}}),),
        prefixes=(ConfigFile(f"{folder}/tools.json", text),),
    )
    local = to_local(one, place())
    here = Path(local.engine.env["KVTIER_PREFIXES"])
    assert here in local.folders
    assert local.files[here / "tools.json"] == text
    assert here in local.scratch, "the next run may have other prefixes"


def test_a_control_sockets_path_is_short_whatever_the_runs_folder() -> None:
    """A socket's path has at most 107 bytes."""
    one = engine(
        env={"KVTIER_CONTROL": "/run/kvtier/control"},
        folders=(Mount("control", "/run/kvtier", {"emptyDir": {"medium": "Memory"}}),),
    )
    deep = [to_local(one, place(folder=Path("/", *["folder"] * 40, name))) for name in ("a", "b")]
    paths = {local.engine.env["KVTIER_CONTROL"] for local in deep}
    assert len(paths) == 2
    assert all(len(f"{path}/engine-100.sock") < 108 for path in paths)
    assert all(Path(local.engine.env["KVTIER_CONTROL"]).parent in local.scratch for local in deep)


def test_a_host_path_is_this_machines_own() -> None:
    mount = Mount("kv-disk-0", "/var/lib/kvtier/disk/0", {"hostPath": {"path": "/mnt/nvme"}})
    local = to_local(engine(mounts=(mount,)), place())
    assert local.folders == (Path("/mnt/nvme"),)
    assert local.scratch == ()
    assert '"/mnt/nvme/native"' in " ".join(local.engine.argv)


@pytest.mark.parametrize(
    ("source", "goes"),
    [
        ({"emptyDir": {"sizeLimit": "1Gi"}}, True),
        ({"ephemeral": {"volumeClaimTemplate": {}}}, True),
        ({"persistentVolumeClaim": {"claimName": "kv"}}, False),
    ],
    ids=str,
)
def test_what_goes_with_a_pod_goes_with_the_run(source: dict[str, object], *, goes: bool) -> None:
    local = to_local(engine(mounts=(Mount("kv-disk-0", "/var/lib/kvtier/disk/0", source),)), place())
    assert local.folders == (FOLDER / "volumes/kv-disk-0",)
    assert local.scratch == (local.folders if goes else ())


def test_only_what_goes_with_the_run_is_removed(tmp_path: Path) -> None:
    kept = Mount("b", "/b", {"hostPath": {"path": str(tmp_path / "nvme")}})
    gone = Mount("a", "/a", {"emptyDir": {}})
    local = to_local(engine(mounts=(gone, kept), files=()), place(folder=tmp_path / "run"))
    materialise(local)
    for folder in local.folders:
        (folder / "kvtier").mkdir()
    discard(local)
    assert [folder.exists() for folder in local.folders] == [False, True]
    discard(local)


@pytest.mark.parametrize("path", ["/var/lib/kvtier/disk/01", "/srv/var/lib/kvtier/disk/0x", "x/dev/shm"])
def test_a_path_that_only_looks_alike_stays(path: str) -> None:
    assert path in to_local(engine(args=("m", "--root", path)), place()).engine.argv


def test_the_longest_folder_is_translated_once() -> None:
    mounts = (Mount("a", "/data", {"emptyDir": {}}), Mount("b", "/data/volumes", {"emptyDir": {}}))
    local = to_local(
        engine(args=("m", "/data/volumes/x", "/data/x"), mounts=mounts), place(folder=Path("/data"))
    )
    assert local.engine.argv[-2:] == ("/data/volumes/b/x", "/data/volumes/a/x")


def test_sidecars_run_beside_the_engine() -> None:
    sidecar = Sidecar("lmcache", None, ("lmcache", "server", "--l2", "/var/lib/kvtier/disk/0"), {"A": "1"})
    [command] = to_local(engine(sidecars=(sidecar,)), place()).sidecars
    assert command.name == "engine-0-lmcache"
    assert command.argv == ("lmcache", "server", "--l2", "/run/here/volumes/kv-disk-0")
    assert command.env == {"A": "1"}


def test_with_the_tiers_off_only_the_connector_is_missing() -> None:
    off = without_tier(engine())
    kept = [argument for argument in engine().args if argument not in {"--kv-transfer-config", TRANSFER}]
    assert list(off.args) == kept
    assert without_tier(off) == off


def test_a_command_can_be_pasted_into_a_shell() -> None:
    command = to_local(engine(), place(), program=("vllm", "serve")).engine
    line = shell_line(command.argv, command.env)
    assert line.startswith("PYTHONHASHSEED=0 CONFIG=/run/here/files/etc/kvtier/lmcache.yaml vllm serve ")
    assert '\'{"kv_connector":"X"' in line
