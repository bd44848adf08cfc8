"""`kvtier doctor NAME`: what the doctors in a resource's pods found."""

import asyncio

from kvtier_common.kubernetes.connect import own_namespace
from kvtier_common.terminal.say import say
from kvtier_operator.cli.cluster import options
from kvtier_operator.cli.cluster.view.doctors import DoctorFindings, doctor_findings
from kvtier_operator.doctor.verdict import Severity


def tell_what_doctors_found(name: str, namespace: str | None, context: str | None) -> bool:
    """Prints it, pod by pod, and says whether some engine lacks what it requires.

    Raises:
        KvtierError: The cluster lacks the resource, or does not let it or its pods be read.
    """
    place, found = asyncio.run(_found(name, namespace, context))
    if not found:
        say(f"{place}/{name}: there is no engine pod yet; see kvtier status {name} -n {place}")
    for each in found:
        say(f"{place}/{name}: pod {each.pod} on {f'node {each.node}' if each.node else 'no node yet'}")
        for severity, message in each.findings:
            say(f"{severity:<4}  {message}")
        if not each.findings:
            say("its doctor has not ended yet")
    return any(severity is Severity.FAIL for each in found for severity, _ in each.findings)


async def _found(
    name: str, namespace: str | None, context: str | None
) -> tuple[str, tuple[DoctorFindings, ...]]:
    async with options.reading(context) as reader:
        place = namespace or own_namespace(context)
        await reader.document(place, name)  # says if there is none
        return place, doctor_findings(await reader.pods(place, name))
