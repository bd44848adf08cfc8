"""Who a pod template may have containers run as: no more than Pod Security's level baseline lets them be.

Source of the lists of values: k8s.io/pod-security-admission/policy.
"""

from collections.abc import Mapping
from typing import Final

from kvtier_operator.planning.pod_template.shape import (
    BOOLEAN,
    LIST,
    NUMBER,
    TEXT,
    Choice,
    Fields,
    ListOf,
    Shape,
)

OF_THE_NODE: Final = "it gives the pod more of its node than the author of a pod template gets here"
_CONFINED: Final = "a container is confined here"
_PROFILE: Final = Fields(
    {"type": Choice(("RuntimeDefault", "Localhost"), _CONFINED), "localhostProfile": TEXT}
)
_SELINUX: Final = Fields(
    {
        "type": Choice(
            ("container_t", "container_init_t", "container_kvm_t", "container_engine_t"), _CONFINED
        ),
        "level": TEXT,
    },
    dict.fromkeys(("user", "role"), OF_THE_NODE),
)
_CAPABILITIES: Final = Choice(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    ),
    OF_THE_NODE,
)
_WHO: Final[Mapping[str, Shape]] = {
    "runAsUser": NUMBER,
    "runAsGroup": NUMBER,
    "runAsNonRoot": BOOLEAN,
    "seccompProfile": _PROFILE,
    "appArmorProfile": _PROFILE,
    "seLinuxOptions": _SELINUX,
}
POD_SECURITY: Final = Fields(
    {
        **_WHO,
        "fsGroup": NUMBER,
        "fsGroupChangePolicy": TEXT,
        "supplementalGroups": LIST,
        "supplementalGroupsPolicy": TEXT,
        "seLinuxChangePolicy": TEXT,
    },
    {"sysctls": OF_THE_NODE, "windowsOptions": "engines and pickers run on Linux"},
    replaceable=True,
)
CONTAINER_SECURITY: Final = Fields(
    {
        **_WHO,
        "allowPrivilegeEscalation": BOOLEAN,
        "readOnlyRootFilesystem": BOOLEAN,
        "capabilities": Fields({"add": ListOf(_CAPABILITIES), "drop": LIST}),
    },
    dict.fromkeys(("privileged", "procMount"), OF_THE_NODE),
    replaceable=True,
)
