"""kgateway needs nothing of its own.

Its Envoy calls the picker over TLS, whatever its certificate, and only so: a picker that serves plain text is
not reached. Source: kgateway-dev/kgateway, issue 11429. It takes InferencePools up to version 2.1 only (pull
request 12437), which the check `gateway-provider` says.
"""

from typing import Final

from kvtier_operator.planning.objects.gateway.providers.provider import Provider

KGATEWAY: Final = Provider(proxies_beside_gateway=True)
