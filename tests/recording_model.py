"""An OpenAI-compatible chat endpoint on loopback that keeps the bytes of every request."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

_FENCE = re.compile(rb"</passage ([0-9a-f]+)>")


@dataclass
class RecordingModel:
    """The endpoint; it gives the prepared replies in turn, and the last one again and again."""

    replies: list[str]
    url: str = ""
    requests: list[bytes] = field(default_factory=list)
    """Each body as it came, but for the random fence, which is FENCE in all of them."""

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """One request: whole, or as a stream where one is asked for."""
        body = await request.read()
        for fence in set(_FENCE.findall(body)):
            body = body.replace(fence, b"FENCE")
        self.requests.append(body)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if not json.loads(body).get("stream"):
            return web.json_response(_completion("message", reply, "stop"))
        chunks = (_completion("delta", reply, None), _completion("delta", "", "stop"))
        events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        return web.Response(text=f"{events}data: [DONE]\n\n", content_type="text/event-stream")


def _completion(field: str, text: str, finish: str | None) -> dict[str, Any]:
    kind = "chat.completion" if field == "message" else "chat.completion.chunk"
    choice = {"index": 0, field: {"role": "assistant", "content": text}, "finish_reason": finish}
    return {"id": "1", "object": kind, "created": 1, "model": "m", "choices": [choice]}


@asynccontextmanager
async def recording_model(*replies: str) -> AsyncIterator[RecordingModel]:
    """Serve until the context ends."""
    model = RecordingModel(list(replies))
    app = web.Application()
    app.router.add_post("/v1/chat/completions", model.complete)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        model.url = f"http://{host}:{port}/v1"
        yield model
    finally:
        await runner.cleanup()
