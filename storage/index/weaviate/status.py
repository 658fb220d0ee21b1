"""Status of a Weaviate server: version, nodes, replication; read-only, over REST."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from storage.errors import IndexUnavailable
from storage.index.weaviate.collection import COLLECTION

# Older servers can lose tenants' data; docs/weaviate.md says how.
OLDEST = (1, 37, 14)


@dataclass(frozen=True, slots=True)
class WeaviateStatus:
    """A server or cluster, as seen by the node that was asked."""

    version: str
    # Name -> HEALTHY or the problem.
    nodes: dict[str, str] = field(default_factory=dict)
    # Replication factor; None if the collection does not exist yet.
    replicas: int | None = None
    # True if the gRPC port is open.
    takes_grpc: bool = True

    @property
    def is_old(self) -> bool:
        """True if it is older than the oldest supported version."""
        numbers = [int(part) for part in self.version.split("-")[0].split(".") if part.isdigit()]
        return tuple(numbers) < OLDEST


async def read_status(url: str, api_key: str | None, grpc_port: int, seconds: float) -> WeaviateStatus:
    """Query the server at ``url``; each request may take ``seconds``.

    Raises:
        IndexUnavailable: the server does not answer, is not Weaviate, or refuses the key.
    """
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=seconds) as client:
            meta = await _get(client, "/v1/meta")
            nodes = await _get(client, "/v1/nodes")
            collection = await _get(client, f"/v1/schema/{COLLECTION}", may_lack=True)
    except httpx.HTTPError as error:
        raise IndexUnavailable(f"no response from the server: {type(error).__name__}") from error
    except (httpx.InvalidURL, ValueError, TypeError, KeyError) as error:
        raise IndexUnavailable("the server is not Weaviate") from error
    factor = collection.get("replicationConfig", {}).get("factor") if collection else None
    return WeaviateStatus(
        str(meta["version"]),
        {str(one["name"]): str(one["status"]) for one in nodes.get("nodes") or ()},
        factor,
        await _is_open(urlsplit(url).hostname or "", grpc_port, seconds),
    )


async def _get(client: httpx.AsyncClient, path: str, *, may_lack: bool = False) -> dict[str, Any]:
    response = await client.get(path)
    if response.status_code in (401, 403):
        raise IndexUnavailable("the server refuses the key")
    if may_lack and response.status_code == 404:
        return {}
    response.raise_for_status()
    answer = response.json()
    if not isinstance(answer, dict) or (path == "/v1/meta" and "version" not in answer):
        raise TypeError
    return answer


async def _is_open(host: str, port: int, seconds: float) -> bool:
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
            return True
    return False
