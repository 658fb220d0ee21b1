"""Figures of a report: found by what they show, and shown with a link that marks them; else left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness.program import Program
from samples.illustrated import illustrated_pdf

ASKED = (
    "Show me the emissions chart",
    "show me figure 2",
    "show the chart with Oslo and Bergen",
    "Show me the pie chart of emissions",
    "How many days do employees have to report an incident?",
    "Who collects the glass?",
)


async def answers(program: Program, folder: Path) -> dict[str, dict[str, Any]]:
    """What is answered once the report was read in full, by question."""
    program.drop("green", illustrated_pdf(folder))
    file = folder / "questions.jsonl"
    file.write_text("".join(json.dumps({"question": one, "channel": "green"}) + "\n" for one in ASKED))
    await program.until_live("green", 1, "full")
    asked = program.run("ask", "--questions", str(file), "--json")
    return {one["question"]: one for one in map(json.loads, asked.stdout.splitlines())}


@pytest.mark.timeout(900)
async def test_a_chart_comes_when_it_is_asked_for_and_never_else(program: Program, tmp_path: Path) -> None:
    """Shows captions, numbers and pixels finding their figure and no other, and prose bringing none."""
    program.environment["FOOTNOTE_LAYOUT"] = "true"
    async with program.serving():
        found = await answers(program, tmp_path)
        captions = {
            question: [(one["page"], one["caption"]) for one in answer["figures"]]
            for question, answer in found.items()
        }
        assert captions == {
            ASKED[0]: [(1, "Figure 1. Emissions of carbon dioxide by year")],
            ASKED[1]: [(2, "Figure 2. Water use by month")],
            ASKED[2]: [(3, "Figure 3. Rubbish by site")],
            ASKED[3]: [],
            ASKED[4]: [],
            ASKED[5]: [],
        }
        states = [found[question]["state"] for question in ASKED]
        assert states == ["grounded", "grounded", "grounded", "not_found", "grounded", "grounded"]
        emissions = found[ASKED[0]]
        assert [one["quote"] for one in emissions["citations"]] == [emissions["figures"][0]["caption"]]
        assert not any("Emissions of carbon" in one["quote"] for one in found[ASKED[4]]["citations"])
        assert await marks(emissions["figures"][0]["url"]) == 1


async def marks(url: str) -> int:
    """How many places the page behind a link marks."""
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return (await response.text()).count('class="mark"')
