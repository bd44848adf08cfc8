"""agentgateway needs nothing of its own.

Its controller gives every InferencePool's picker a TLS policy that accepts any certificate, so the picker
keeps serving TLS. Source: agentgateway/agentgateway, controller/pkg/agentgateway/plugins/inference_plugin.go.
(The plain-text picker of llm-d-router's charts is for agentgateway as a proxy without a controller.)
"""

from typing import Final

from kvtier_operator.planning.objects.gateway.providers.provider import Provider

AGENTGATEWAY: Final = Provider(proxies_beside_gateway=True)
