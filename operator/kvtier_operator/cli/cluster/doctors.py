"""`kvtier doctor NAME`: what the doctors in a resource's pods found."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_common.terminal.say import say, say_json
from kvtier_operator.cli.cluster.resource import component_of
from kvtier_operator.cli.inputs import options
from kvtier_operator.doctor.verdict import Severity, worst_of
from kvtier_operator.planning.base.names import Component
from kvtier_operator.planning.objects.engine.containers import DOCTOR_NAME

_WELL: Final = "the engine finds what it needs"


@dataclass(frozen=True, slots=True)
class DoctorFindings:
    """What one pod's doctor found, as its termination message says it."""

    pod: str  # the engine's pod
    node: str  # its node; empty before it has one
    # severity and message of each thing; empty where the doctor has not ended yet
    findings: tuple[tuple[Severity, str], ...]


def doctor_findings(pods: Iterable[Mapping[str, Any]]) -> tuple[DoctorFindings, ...]:
    """Of the engines' pods, by name."""
    engines = (pod for pod in pods if component_of(pod) == Component.ENGINE)
    return tuple(
        DoctorFindings(
            engine["metadata"]["name"],
            (engine.get("spec") or {}).get("nodeName", ""),
            _findings(engine.get("status") or {}),
        )
        for engine in sorted(engines, key=lambda pod: str(pod["metadata"]["name"]))
    )


def _findings(status: Mapping[str, Any]) -> tuple[tuple[Severity, str], ...]:
    doctors = (
        container for container in status.get("initContainerStatuses", ()) if container["name"] == DOCTOR_NAME
    )
    for container in doctors:
        for state in (container.get("state", {}), container.get("lastState", {})):
            if ended := state.get("terminated"):
                return _read_message(ended)
    return ()


def _read_message(ended: Mapping[str, Any]) -> tuple[tuple[Severity, str], ...]:
    """Reads what `termination_message` of doctor/verdict.py writes; a pod may say anything."""
    message = " ".join(str(ended.get("message") or "").split())
    if ended.get("exitCode"):
        return ((Severity.FAIL, message or f"the doctor ended with exit code {ended['exitCode']}"),)
    try:
        report = parse_json(message)
    except MalformedError:  # of many warnings Kubernetes keeps the first 4096 bytes
        return ((Severity.WARN, message) if message else (Severity.PASS, _WELL),)
    warnings = report.get("warnings") if isinstance(report, dict) else None
    if not isinstance(warnings, list) or not warnings:
        return ((Severity.PASS, _WELL),)
    return tuple((Severity.WARN, str(warning)) for warning in warnings)


def tell_what_doctors_found(
    name: str, namespace: str | None, cluster: options.ClusterChoice, output: str
) -> bool:
    """Prints it, pod by pod, and says whether some engine lacks what it requires."""
    place, reports = asyncio.run(_read(name, namespace, cluster))
    severities = [severity for report in reports for severity, _ in report.findings]
    outcome = worst_of(severities) if severities else None  # nobody knows yet
    if output == "json":
        pods = [_fields(report) for report in reports]
        say_json({"namespace": place, "name": name, "outcome": outcome, "pods": pods})
    else:
        _say_reports(place, name, reports)
    return outcome is Severity.FAIL


def _fields(report: DoctorFindings) -> dict[str, object]:
    findings = [{"outcome": severity, "message": message} for severity, message in report.findings]
    return {"pod": report.pod, "node": report.node, "ended": bool(findings), "findings": findings}


def _say_reports(place: str, name: str, reports: Iterable[DoctorFindings]) -> None:
    if not reports:
        say(f"{place}/{name}: there is no engine pod yet; see kvtier status {name} -n {place}")
    for report in reports:
        say(f"{place}/{name}: pod {report.pod} on {f'node {report.node}' if report.node else 'no node yet'}")
        for severity, message in report.findings:
            say(f"{severity:<4}  {message}")
        if not report.findings:
            say("its doctor has not ended yet")


async def _read(
    name: str, namespace: str | None, cluster: options.ClusterChoice
) -> tuple[str, tuple[DoctorFindings, ...]]:
    async with options.open_cluster(cluster, namespace) as (reader, place):
        await reader.document(place, name)  # says if there is none
        return place, doctor_findings(await reader.pods(place, name))
