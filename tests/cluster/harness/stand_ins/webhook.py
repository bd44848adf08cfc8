"""A mutating admission webhook on loopback, as a mesh or a mirror of images has one."""

import base64
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from kubernetes import client
from tests.cluster.harness.control_plane.certificates import Authority
from tests.cluster.harness.stand_ins.http_server import serving

Document = dict[str, Any]
Mutation = Callable[[Document], list[Document]]
"""JSON patch for an object that is written."""


@contextmanager
def mutating_deployments(
    api: client.ApiClient, namespace: str, folder: Path, mutation: Mutation
) -> Iterator[None]:
    """Every Deployment that is written in a namespace is changed so meanwhile."""
    authority = Authority(folder)
    pair = authority.sign("webhook", addresses=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    admission = client.AdmissionregistrationV1Api(api)
    with serving(_handler(mutation), tls=context) as port:
        url = f"https://127.0.0.1:{port}/"
        try:
            admission.create_mutating_webhook_configuration(
                _configuration(namespace, url, authority.file.read_bytes())
            )
            yield
        finally:
            admission.delete_mutating_webhook_configuration(namespace)


def _configuration(namespace: str, url: str, authority: bytes) -> Document:
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["deployments"],
    }
    webhook = {
        "name": "injector.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [rule],
    }
    return {"metadata": {"name": namespace}, "webhooks": [webhook]}


def _handler(mutation: Mutation) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the base class's name
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            patch = json.dumps(mutation(review["request"]["object"])).encode()
            response = {
                "uid": review["request"]["uid"],
                "allowed": True,
                "patchType": "JSONPatch",
                "patch": base64.b64encode(patch).decode(),
            }
            body = json.dumps({**review, "request": None, "response": response}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
