"""MCP server: the documents as tools and resources of an AI assistant, over HTTP or standard input.

It is stateless over HTTP: every request has a token of its own, and each process answers any of them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from bot.web.api.access import ACCESS_KEY, LOCAL_ACCESS, Access
from bot.web.api.api_service import ApiService
from bot.web.api.models import (
    AnswerView,
    AskRequest,
    CitationView,
    PageContent,
    PageRequest,
    PassageView,
    SearchRequest,
    SearchResults,
)
from bot.web.api.problems import DETAILS, ApiError
from storage.errors import InfrastructureError

# Resources per page of their list, and characters of a document that is read as one.
LISTED, MAX_TEXT_CHARS = 200, 200_000
INSTRUCTIONS = (
    "Footnote answers from an organisation's documents and proves it. Cite each statement with the page and "
    "the link (url) that a result carries. If ask finds no answer, say so instead of guessing."
)
_URI = re.compile(r"footnote://documents/(\w+)/([0-9a-f-]{36})", re.ASCII)

_Context = ServerRequestContext[Any]
_Serve = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Tool:
    """Tool with the models of its arguments and its result."""

    name: str
    description: str
    arguments: type[BaseModel]
    result: type[BaseModel]
    # Returns the result and the text that assistants without structured results read.
    call: Callable[[Access, Any], Awaitable[tuple[BaseModel, str]]]


class McpServer:
    """Tools and resources over ``ApiService``."""

    def __init__(self, service: ApiService) -> None:
        self._service = service
        self._tools = {
            one.name: one
            for one in (
                _Tool(
                    "search_documents",
                    "Find passages in the documents, each with its page, its best sentence and a link.",
                    SearchRequest,
                    SearchResults,
                    self._search,
                ),
                _Tool(
                    "ask",
                    "Answer a question from the documents; a quote with its page proves every sentence.",
                    AskRequest,
                    AnswerView,
                    self._ask,
                ),
                _Tool("get_page", "Read a page of a document.", PageRequest, PageContent, self._page),
            )
        }
        self.server: Server[Any] = Server(
            "footnote",
            title="Footnote",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
        )

    async def _list_tools(
        self, _context: _Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=one.name,
                    description=one.description,
                    input_schema=one.arguments.model_json_schema(),
                    output_schema=one.result.model_json_schema(mode="serialization"),
                    annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
                )
                for one in self._tools.values()
            ]
        )

    async def _call_tool(
        self, context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, "There is no such tool.")
        try:
            asked = tool.arguments.model_validate(params.arguments or {})
            result, text = await tool.call(_access(context), asked)
        except ValidationError as error:
            return _refused("; ".join(f"{one['loc']}: {one['msg']}" for one in error.errors()))
        except ApiError as error:
            return _refused(error.problem.detail)
        except (InfrastructureError, TimeoutError):
            return _refused(DETAILS[503])
        content = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[content], structured_content=result.model_dump(mode="json"))

    async def _search(self, access: Access, asked: SearchRequest) -> tuple[BaseModel, str]:
        channel, found = await self._service.search(access, asked)
        passages = [PassageView.of(one) for one in found]
        texts = [f"{_source(one)}\n{one.text}" for one in passages]
        results = SearchResults(channel=channel.name, passages=passages)
        return results, "\n\n".join(texts) or "Nothing found."

    async def _ask(self, access: Access, asked: AskRequest) -> tuple[BaseModel, str]:
        done = await self._service.ask(access, asked)
        answer = AnswerView.of(done.answer, done.id, done.channel.name)
        return answer, "\n".join((answer.text, *map(_source, answer.citations)))

    async def _page(self, access: Access, asked: PageRequest) -> tuple[BaseModel, str]:
        read = await self._service.page(access, asked.channel, asked.document, asked.page)
        status = read.document.status
        page = PageContent(
            document=status.document,
            title=status.title,
            file=status.file,
            page=read.page,
            text=read.text,
            url=read.url,
        )
        return page, f"{page.title}, page {page.page}\n{page.url}\n\n{page.text}"

    async def _list_resources(
        self, context: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = (params.cursor if params else None) or "0"
        if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
            raise MCPError(types.INVALID_PARAMS, "There is no such page of the list.")
        start = int(cursor)
        documents = await self._service.all_documents(_access(context))
        listed = documents[start : start + LISTED]
        end = start + len(listed)
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=f"footnote://documents/{channel.tenant}/{one.document}",
                    name=one.file,
                    title=one.title or one.file,
                    description=f"in the channel {channel.name}, pages: {one.pages}",
                    mime_type="text/plain",
                )
                for channel, one in listed
            ],
            next_cursor=str(end) if end < len(documents) else None,
        )

    async def _read_resource(
        self, context: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        found = _URI.fullmatch(params.uri)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, DETAILS[404])
        try:
            url, pages = await self._service.text(_access(context), found[1], found[2])
        except ApiError as error:
            raise MCPError(types.INVALID_PARAMS, error.problem.detail) from None
        text = "\n\n".join(f"--- Page {number} ---\n{page}" for number, page in enumerate(pages, 1))
        if len(text) > MAX_TEXT_CHARS:
            text = f"{text[:MAX_TEXT_CHARS]}\n\n[Cut here: read further pages with get_page.]"
        content = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=f"{url}\n\n{text}")
        return types.ReadResourceResult(contents=[content])


def _access(context: _Context) -> Access:
    """Return the caller of an HTTP request, or of the command line, which has none."""
    if context.request is None:
        return LOCAL_ACCESS
    access: Access = context.request.scope[ACCESS_KEY]
    return access


def _refused(detail: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=detail)], is_error=True)


def _source(one: CitationView) -> str:
    page = f", page {one.page}" if one.page else ""
    return f"[{one.number}] {one.title}{page}: “{one.quote}” {one.url}"


@asynccontextmanager
async def serving_http(service: ApiService) -> AsyncIterator[_Serve]:
    """Yield an ASGI application; enter and leave it in the same task."""
    manager = StreamableHTTPSessionManager(McpServer(service).server, json_response=True, stateless=True)
    async with manager.run():
        yield manager.handle_request


async def serve_stdio(service: ApiService) -> None:
    """Serve one assistant over standard input and output until it closes them."""
    server = McpServer(service).server
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
