"""An OpenAI-compatible embeddings endpoint on loopback, with scripted faults."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from aiohttp import web

from storage.text.analyzer import analyze

DIMENSIONS = 96
# Returns a response in place of the vectors.
Fault = Callable[[dict[str, Any]], web.Response]


def embed_by_terms(text: str, dimensions: int) -> list[float]:
    """Return hashed term counts as a vector of this length: equal words, equal meaning."""
    vector = np.full(dimensions, 0.01)
    for term in analyze(text):
        vector[sum(term.encode()) * 31 % dimensions] += 1
    return [float(number) for number in vector]


@dataclass
class EmbeddingServer:
    """The endpoint; each of ``faults`` is returned once before it embeds again."""

    url: str = ""
    dimensions: int = DIMENSIONS
    faults: list[Fault] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    # Number of texts after which it is overloaded; None: never.
    allowed: int | None = None
    # True if it accepts these texts in one request.
    takes: Callable[[list[str]], bool] = lambda _: True
    # Requests refused because of overload.
    refused: int = 0

    @property
    def texts(self) -> list[str]:
        """All embedded texts, in order."""
        return [text for request in self.requests for text in request["input"]]

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a request: with a fault if there is one, else with vectors in reverse order."""
        body = await request.json()
        self.keys.append(request.headers.get("Authorization", ""))
        if self.faults:
            return self.faults.pop(0)(body)
        if not self.takes(body["input"]):
            return refuse(413)(body)
        if self.allowed is not None and len(self.texts) >= self.allowed:
            self.refused += 1
            return refuse(503)(body)
        self.requests.append(body)
        return web.json_response(reply(body, body.get("dimensions", self.dimensions)))


def reply(body: dict[str, Any], dimensions: int) -> dict[str, Any]:
    """Return a reply in reverse order, because the protocol promises no order."""
    data = [
        {"object": "embedding", "index": index, "embedding": embed_by_terms(text, dimensions)}
        for index, text in enumerate(body["input"])
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": body["model"], "data": data[::-1], "usage": usage}


def refuse(status: int, **headers: str) -> Fault:
    """Return an error response of the protocol."""
    body = {"error": {"message": "no", "type": "server_error", "code": None}}
    return lambda _: web.json_response(body, status=status, headers=headers)


def say(text: str, kind: str = "application/json") -> Fault:
    """Return another body with status 200."""
    return lambda _: web.Response(text=text, content_type=kind)


def change(changed: Callable[[dict[str, Any]], object]) -> Fault:
    """Return the right reply with changes."""

    def answer(body: dict[str, Any]) -> web.Response:
        right = reply(body, DIMENSIONS)
        changed(right)
        return web.Response(text=json.dumps(right), content_type="application/json")

    return answer


@asynccontextmanager
async def embedding_server(port: int = 0) -> AsyncIterator[EmbeddingServer]:
    """Yield the running endpoint."""
    server = EmbeddingServer()
    application = web.Application()
    application.router.add_post("/v1/embeddings", server.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()
