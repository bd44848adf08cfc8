"""A cluster that is known by a kubeconfig."""

import json
from dataclasses import dataclass
from pathlib import Path

import yaml
from kubernetes import client, config
from tests.cluster.harness.control_plane.kubeconfig import service_account_token


@dataclass(frozen=True, slots=True)
class KubeconfigCluster:
    """A cluster whose administrator's kubeconfig is in a file; what is written goes to a folder."""

    file: Path
    folder: Path

    @property
    def url(self) -> str:
        """The API server's address."""
        with self.client() as api:
            return str(api.configuration.host)

    @property
    def audit_log(self) -> None:
        """It has none that is reached from here."""

    def client(self) -> client.ApiClient:
        """A new client with the rights of the file's user."""
        return config.new_client_from_config(str(self.file))

    def kubeconfig(self, folder: Path | None = None) -> Path:
        """A copy of the file."""
        target = (folder or self.folder) / "administrator.kubeconfig"
        target.touch(mode=0o600)
        target.write_bytes(self.file.read_bytes())
        return target

    def kubeconfig_for_service_account(self, namespace: str, name: str, folder: Path | None = None) -> Path:
        """Writes a kubeconfig with a token of an existing service account."""
        with self.client() as api:
            token = service_account_token(api, namespace, name)
        content = yaml.safe_load(self.file.read_text())
        (current,) = [each for each in content["contexts"] if each["name"] == content["current-context"]]
        current["context"]["namespace"] = namespace
        content["contexts"] = [current]
        content["users"] = [{"name": current["context"]["user"], "user": {"token": token}}]
        target = (folder or self.folder) / f"{namespace}-{name}.kubeconfig"
        target.touch(mode=0o600)
        target.write_text(json.dumps(content))
        return target
