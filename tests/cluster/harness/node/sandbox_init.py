"""First process of a node's namespaces: arranges what the node must not share with this machine, then waits.

Run as a script, with one folder as its argument. Everything in these namespaces dies with it, and what
it mounted goes with them.
"""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

# The kubelet sets these for the whole kernel; here it sets files of its own instead.
_SYSCTLS: Final = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
READY: Final = "ready"


def main(folder: Path) -> None:
    """Mounts, says that it is ready, and reaps whatever its namespace leaves behind."""
    # Sockets, locks and the pods' network namespaces; /var/run is the same folder.
    _mount("-t", "tmpfs", "tmpfs", "/run")
    Path("/run/lock").mkdir()
    # The kubelet links the containers' logs there, whatever it is told.
    logs = folder / "var-log"
    logs.mkdir()
    _mount("--bind", str(logs), "/var/log")
    for name in _SYSCTLS:
        if not (Path("/proc/sys") / name).exists():
            continue
        real, copy = Path("/proc/sys") / name, Path("/run/sysctl") / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(real.read_text())
        _mount("--bind", str(copy), str(real))
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then reaps orphans by itself
    (folder / READY).touch()
    while True:
        signal.pause()


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)  # noqa: S603, S607 - our own command


if __name__ == "__main__":
    main(Path(sys.argv[1]))
