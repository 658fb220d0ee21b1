"""An OpenAI-compatible endpoint that sends exactly the bytes, at the times, that a test wants."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

# Receives a request's body and writes the response.
Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}


@asynccontextmanager
async def byte_server(handle: Handler) -> AsyncIterator[str]:
    """Yield the endpoint's base URL; each connection serves one request."""
    open_now: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(asyncio.current_task())  # type: ignore[arg-type]
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            (length,) = re.findall(rb"content-length: (\d+)", head.lower())
            with suppress(ConnectionError):
                await handle(await reader.readexactly(int(length)), writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        for task in open_now:  # from Python 3.12 on, closing the server waits for them
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)


def response(body: bytes, *, status: str = "200 OK", kind: str = "application/json", more: str = "") -> bytes:
    """Return a complete response."""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    )
    return f"{head}{more}\r\n".encode() + body


def completion(content: str | None, finish: str = "stop", **changes: object) -> bytes:
    """Return the body of a complete chat completion."""
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps({**body, **changes}).encode()


def event(piece: str | None = None, finish: str | None = None, **changes: object) -> bytes:
    """Return one event of a stream."""
    choice = {"index": 0, "delta": {"content": piece} if piece else {}, "finish_reason": finish}
    body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps({**body, **changes})}\n\n".encode()


def pieces(text: str, size: int = 7) -> list[str]:
    """Return a text in token-like pieces."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def stream(text: str, *, finish: str | None = "stop", usage: Any = USAGE) -> bytes:
    """Return a complete streaming response; without ``finish`` it ends early."""
    told = [event(piece) for piece in pieces(text)]
    ends = [event(finish=finish), event(choices=[], usage=usage), DONE] if finish else []
    return b"".join([STREAM_HEAD, *told, *ends])


def always(raw: bytes) -> Handler:
    """Return a handler with the same response to every request."""
    return in_turn(raw, repeats=True)


def in_turn(*answers: bytes, repeats: bool = False) -> Handler:
    """Return a handler with these responses in turn; the last one is repeated if ``repeats``."""
    left = list(answers)

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(left[0] if repeats and len(left) == 1 else left.pop(0))
        await writer.drain()

    return handle


def slowly(parts: Sequence[bytes], pause: float) -> Handler:
    """Return a handler that pauses after each part of a response."""

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)

    return handle
