"""An assistant uses the documents by MCP, over HTTP with tokens and over standard input."""

from __future__ import annotations

import httpx2
import pytest
from harness.program import FOOTNOTE, Program
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from samples.paper import pdf

QUESTION = "When do backups run?"


def assistant(token: str) -> httpx2.AsyncClient:
    """Return an HTTP client that sends a token, and waits however slow the machine is."""
    return httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=None)


async def test_an_assistant_uses_the_tools_over_http(with_samples: Program) -> None:
    """The SDK's own client: each result has page, quote and link; another channel's document is not there."""
    program = with_samples
    async with program.serving():
        program.drop("hr", pdf("Parental leave is fourteen weeks."), "leave.pdf")
        await program.until_live("hr", 1)
        it, hr = program.new_token("--channel", "it"), program.new_token("--channel", "hr")
        async with assistant(it) as http:
            transport = streamable_http_client(f"{program.url}/mcp", http_client=http)
            async with Client(transport) as client:
                uri = await check_tools(client)
        async with assistant(hr) as http:
            transport = streamable_http_client(f"{program.url}/mcp", http_client=http)
            async with Client(transport) as client:
                assert [one.name for one in (await client.list_resources()).resources] == ["leave.pdf"]
                with pytest.raises(Exception, match="no such thing"):
                    await client.read_resource(uri)
                answer = await client.call_tool("ask", {"question": QUESTION, "channel": "it"})
                assert answer.is_error
        async with assistant("wrong") as http:
            refused = await http.post(f"{program.url}/mcp", json={})
        assert (refused.status_code, refused.headers["content-type"]) == (401, "application/problem+json")


@pytest.mark.long
async def test_an_assistant_uses_a_home_over_stdio(with_samples: Program) -> None:
    """Needs no token and no running service."""
    environment = with_samples.variables
    server = StdioServerParameters(command=str(FOOTNOTE), args=["mcp"], env=environment)
    async with Client(server, mode="legacy") as client:  # the other one times out on a slow start
        await check_tools(client)


async def check_tools(client: Client) -> str:
    """Check every tool, and the resources; return the URI of one."""
    tools = {one.name for one in (await client.list_tools()).tools}
    assert tools == {"search_documents", "ask", "get_page"}
    answer = await client.call_tool("ask", {"question": QUESTION})
    (source, *_) = answer.structured_content["citations"]
    assert (source["page"], "2:00 AM" in source["quote"], "/v/" in source["url"]) == (1, True, True)
    assert source["url"] in answer.content[0].text
    found = await client.call_tool("search_documents", {"query": QUESTION, "limit": 1})
    (passage,) = found.structured_content["passages"]
    assert passage["quote"] in " ".join(passage["text"].split())
    page = await client.call_tool("get_page", {"document": passage["document"], "page": 1})
    assert "2:00 AM" in page.structured_content["text"]
    assert "/v/" in page.structured_content["url"]
    wrong = await client.call_tool("get_page", {"document": passage["file"], "page": 99})
    assert (wrong.is_error, "no such thing" in wrong.content[0].text) == (True, True)
    resources = (await client.list_resources()).resources
    backup = next(one for one in resources if one.name.startswith("SOP-IT-04"))
    read = await client.read_resource(backup.uri)
    assert "2:00 AM" in read.contents[0].text
    return str(backup.uri)
