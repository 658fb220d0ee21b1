"""OpenTelemetry traces of a dropped PDF and a question."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest
from fakes.otlp_receiver import attributes, otlp_receiver
from harness.program import Program

STAGES = ["understand", "retrieve", "judge", "write", "cite"]
STEPS = ["read quick", "publish quick", "read full", "publish full"]


@pytest.mark.long
async def test_serve_traces_a_pdf_and_a_question(program: Program, sop: Path) -> None:
    """Shows the spans that a collector receives."""
    with otlp_receiver() as receiver:
        program.environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        async with program.serving():
            program.drop("handbook", sop)
            await program.until_live("handbook", 1, "full")
            assert "2:00 AM" in await program.ask_console("handbook", "When do backups run?")
    names = Counter(span.name for span in receiver.spans)
    assert names.keys() >= {"question", *STAGES, *STEPS}
    read = {span.trace_id: span.name for span in receiver.spans if span.name.startswith("read ")}
    published = {span.trace_id: span.name for span in receiver.spans if span.name.startswith("publish ")}
    assert read.keys() == published.keys()
    assert sorted(read.values()) == ["read full", "read quick"]
    (root,) = [span for span in receiver.spans if span.name == "question"]
    said = attributes(root)
    assert said.items() >= {"footnote.channel_type": "local", "footnote.outcome": "passages"}.items()
    assert f"question={said['footnote.question']} " in program.log
    assert f"reading={UUID(bytes=next(iter(read)))} " in program.log
    sent = b"".join(receiver.bodies)
    assert not [word for word in (b"2:00", b"ackup", b"handbook", sop.name.encode()) if word in sent]
