"""What brings the connector into a pod whose image has nothing of kvtier: names that image and pod share."""

from typing import Final

ATTACH_VARIABLE: Final = "KVTIER_ATTACH"
"""Environment variable with the settings of an engine that others own, as one JSON object."""
PAYLOAD_PATH: Final = "/var/lib/kvtier/connector"
"""Where the payload stands in the engine's container."""
IMAGE_PAYLOAD_PATH: Final = "/payload"
"""Where it is in the image kvtier/connector."""
CACHE_PATH: Final = "/var/lib/kvtier/cache"
"""What can be written beside it where it is a volume of the image, which cannot."""
INIT_NAME: Final = "kvtier-payload"
"""The init container that copies it."""
VOLUME_NAME: Final = "kvtier-payload"
"""The volume that it copies it to."""
COPY_COMMAND: Final = ("/bin/cp", "-R", f"{IMAGE_PAYLOAD_PATH}/.", f"{PAYLOAD_PATH}/")
"""Without -a: it says of each file that its owner cannot be kept, where the pod is not root."""
SEARCH_PATH: Final = "PYTHONPATH"
"""Variable that comes in front of what the pod has."""
ENVIRONMENT: Final = {SEARCH_PATH: PAYLOAD_PATH, "NUMBA_CACHE_DIR": f"{PAYLOAD_PATH}/numba-cache"}
"""Of the engine's container, unless it has them."""
CONTROL_VARIABLE: Final = "KVTIER_CONTROL"
"""Variable with the folder of an engine's control sockets."""
CONTROL_MOUNT: Final = "/run/kvtier"
CONTROL_PATH: Final = f"{CONTROL_MOUNT}/control"
"""That folder where nothing else is said. A volume belongs to root: the engine makes a folder in it that
nobody else may enter."""
CONTROL_PROGRAM: Final = "kvtier_connector.control"
"""Module that tells the engines of its container what to do."""
PREFIXES_VARIABLE: Final = "KVTIER_PREFIXES"
"""Variable with the folder of the prefixes that an engine computes when it starts, a file each."""
PREFIXES_WITHIN_VARIABLE: Final = "KVTIER_PREFIXES_WITHIN_S"
"""Variable with the seconds that this may take before it serves."""
KEPT_VARIABLES: Final = (CONTROL_VARIABLE, PREFIXES_VARIABLE, PREFIXES_WITHIN_VARIABLE)
MIDDLEWARE: Final = "kvtier_connector.serve.middleware.KVTierMiddleware"
"""What stands before an engine's API, as an argument of vLLM's names it."""
PLUGIN_NAME: Final = "kvtier"
"""Entry point of the group `vllm.general_plugins`."""
PLUGINS: Final = "VLLM_PLUGINS"
"""Variable with the plug-ins that vLLM loads, with commas between them; without it, all."""


def with_plugin(plugins: str) -> str:
    """Return that variable's value with our plug-in."""
    if PLUGIN_NAME in plugins.split(","):  # as vLLM reads it, which keeps spaces
        return plugins
    return f"{plugins},{PLUGIN_NAME}" if plugins else PLUGIN_NAME
