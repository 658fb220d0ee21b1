"""Probe: thirty misconfigurations with a canary in every secret; no command prints one.

Run alone: ``make test-all TESTS=tests/security/test_secrets_unsaid.py``.
"""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest
from harness.program import Program

CANARY = "Zq7Xw9CANARYkV3"
NOWHERE = "127.0.0.1:9"
EVERY_SECRET = {
    "OPENAI_API_KEY": f"sk-{CANARY}",
    "WEAVIATE_API_KEY": CANARY,
    "SLACK_BOT_TOKEN": f"xoxb-{CANARY}",
    "SLACK_APP_TOKEN": f"xapp-{CANARY}",
    "SLACK_SIGNING_SECRET": CANARY,
    "MicrosoftAppPassword": CANARY,
    "FOOTNOTE_RERANK_KEY": CANARY,
    "FOOTNOTE_EMBED_API_KEY": CANARY,
    "FOOTNOTE_SECOND_MODEL_KEY": CANARY,
    "AWS_SECRET_ACCESS_KEY": CANARY,
    "FOOTNOTE_SMB_PASSWORD": CANARY,
    "FOOTNOTE_WEBDAV_PASSWORD": CANARY,
    "SLACK_API_URL": f"http://{NOWHERE}/api/",
}
AT = f"someone:{CANARY}@{NOWHERE}"
MISTAKES: list[dict[str, str]] = [
    {},
    {"DATABASE_URL": f"postgresql://{AT}/db"},
    {"DATABASE_URL": f"postgresql://{AT}"},
    {"DATABASE_URL": f"postgresql://someone:{CANARY}@host:port/db"},
    {"DATABASE_URL": f"mysql://{AT}/db"},
    {"DATABASE_URL": f"{CANARY}"},
    {"DATABASE_URL": f"sqlite:////nowhere/{CANARY}?mode=x"},
    {"DATABASE_URL": f"postgresql://{AT}/db?sslmode=odd&sslpassword={CANARY}"},
    {"WEAVIATE_URL": f"http://{AT}"},
    {"WEAVIATE_URL": f"http://{NOWHERE}"},
    {"WEAVIATE_URL": f"ftp://{AT}"},
    {"WEAVIATE_API_KEY": f"{CANARY}ö", "WEAVIATE_URL": f"http://{NOWHERE}"},
    {"SLACK_API_URL": f"http://{AT}/api/"},
    {"SLACK_API_URL": f"https://{AT}"},
    {"SLACK_BOT_TOKEN": f"xoxb-{CANARY}ü"},
    {"SLACK_BOT_TOKEN": f"xoxb-{CANARY}\n"},
    {"SLACK_APP_TOKEN": "", "SLACK_SIGNING_SECRET": ""},
    {"OPENAI_BASE_URL": f"http://{AT}/v1"},
    {"OPENAI_BASE_URL": f"http://{NOWHERE}/v1?key={CANARY}"},
    {"OPENAI_BASE_URL": f"http://{NOWHERE}/v1"},
    {"OPENAI_API_KEY": f"sk-{CANARY}“"},
    {"FOOTNOTE_SECOND_MODEL": "m", "FOOTNOTE_SECOND_MODEL_URL": f"https://{AT}/v1"},
    {"FOOTNOTE_RERANKER": "endpoint", "FOOTNOTE_RERANK_URL": f"http://{AT}/rerank"},
    {"FOOTNOTE_EMBED_MODEL": "m", "FOOTNOTE_EMBED_BASE_URL": f"http://{AT}/v1"},
    {"FOOTNOTE_EMBED_MODEL": "m", "FOOTNOTE_EMBED_BASE_URL": f"http://{NOWHERE}/v1"},
    {"FOOTNOTE_PDF_PASSWORDS": CANARY},
    {"FOOTNOTE_PUBLIC_URL": f"https://{AT}"},
    {"FOOTNOTE_SHARE_ACCOUNTS": f'{{"host": {{"password": "{CANARY}"'},
    {"FOOTNOTE_SHARE_ACCOUNTS": f'{{"host": {{"pasword": "{CANARY}"}}}}'},
    {"MicrosoftAppId": "app", "MicrosoftAppPassword": f"{CANARY} "},
    {"AWS_ENDPOINT_URL": f"http://{AT}"},
    {"FOOTNOTE_VISION_URL": f"https://{AT}/v1", "FOOTNOTE_VISION_MODEL": "m"},
]
# Seconds to watch a service that starts despite the mistake.
SECONDS = 4


@pytest.mark.long
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: " ".join(mistake) or "none")
def test_no_output_contains_a_secret(tmp_path: Path, mistake: dict[str, str]) -> None:
    """Covers doctor, a listing, a question and the service itself, with debug logs."""
    program = Program(tmp_path / "home", EVERY_SECRET | mistake)
    said = [
        program.run(*command) for command in (["-v", "doctor"], ["-v", "channels"], ["-v", "ask", "When?"])
    ]
    outputs = "".join(one.stdout + one.stderr for one in said) + watched(program)
    assert outputs
    assert CANARY not in outputs
    written = [path for path in program.home.rglob("*") if path.is_file() and CANARY in path.name]
    assert written == []


def watched(program: Program) -> str:
    """Return the service's output in its first seconds, or until it exits."""
    process = program.start()
    deadline = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return program.log
