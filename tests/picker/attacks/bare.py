"""A trivial grpc.aio server in the picker's place, which reads nothing in a message but its kind.

python -m tests.picker.attacks.bare --port 9002
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Final

import click
import grpc
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse
from tests.picker.attacks.child import say
from tests.picker.attacks.neighbour import PROCESS

from kvtier_scorer.config.contract import DESTINATION

_ENDPOINT: Final = b"127.0.0.1:80"


async def _process(messages: AsyncIterator[bytes], _: object) -> AsyncIterator[bytes]:
    async for message in messages:
        answer = _answer(ProcessingRequest.FromString(message))
        yield bytes(answer.SerializeToString())


def _answer(asked: ProcessingRequest) -> ProcessingResponse:
    answer = ProcessingResponse()
    if asked.HasField("request_headers"):
        header = answer.request_headers.response.header_mutation.set_headers.add().header
        header.key, header.raw_value = DESTINATION, _ENDPOINT
    else:
        answer.request_body.response.body_mutation.streamed_response.body = asked.request_body.body
    return answer


class _Handlers(grpc.GenericRpcHandler):
    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        if handler_call_details.method != PROCESS:
            return None
        return grpc.stream_stream_rpc_method_handler(_process)


async def _serve(port: int) -> None:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Handlers(),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    say("ready")
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(None)


@click.command()
@click.option("--port", type=int, required=True)
def main(port: int) -> None:
    """Serve until standard input ends."""
    asyncio.run(_serve(port))


if __name__ == "__main__":
    main()
