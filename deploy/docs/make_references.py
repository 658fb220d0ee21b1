"""Generates docs/settings.md and docs/commands.md from the settings classes and the argument parser.

Run by ``make format``; ``tests/test_docs.py`` compares the pages with the program.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic.fields import FieldInfo

from bot.cli.main import build_parser
from bot.cli.setup.printed_files import described, shown_default
from bot.settings import SETTINGS_CLASSES

DOCS = Path(__file__).parents[2] / "docs"
FIRST = (
    "FOOTNOTE_HOME", "FOOTNOTE_INBOX", "FOOTNOTE_PUBLIC_URL", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN",
    "MicrosoftAppId", "OPENAI_API_KEY", "OPENAI_MODEL", "DATABASE_URL", "WEAVIATE_URL", "FOOTNOTE_ADMINS",
    "FOOTNOTE_ADMIN_CHANNEL",
)  # fmt: skip
# Task -> (page, patterns of variables); a variable belongs to the first task that matches it.
TASKS = {
    "Choose where data is stored": ("machines.md", "FOOTNOTE_HOME DATABASE_URL FOOTNOTE_BLOB* AWS_*"),
    "Choose the index": ("weaviate.md", "*WEAVIATE_* FOOTNOTE_INDEX_*"),
    "Open pages to browsers": (
        "proxy.md",
        "FOOTNOTE_PUBLIC_URL FOOTNOTE_HOST FOOTNOTE_PORT FOOTNOTE_ROLE FOOTNOTE_CONNECTIONS* "
        "FOOTNOTE_CONSOLE FOOTNOTE_METRICS_* FOOTNOTE_SOURCE_URL FOOTNOTE_PAGE_IMAGES_MB",
    ),
    "Sign links": (
        "viewer.md",
        "FOOTNOTE_LINK_* FOOTNOTE_TOKEN_KEYS FOOTNOTE_BUTTON_OPENS FOOTNOTE_SOURCES_SHOWN",
    ),
    "Let people sign in to the console": ("console.md", "FOOTNOTE_OIDC_*"),
    "Connect Slack": ("connect-slack.md", "SLACK_* FOOTNOTE_THREAD_* FOOTNOTE_DIRECT_CHATS"),
    "Connect Teams": ("connect-teams.md", "Microsoft* FOOTNOTE_TEAMS_*"),
    "Name admins, choose who is told": (
        "slack.md",
        "FOOTNOTE_ADMIN* FOOTNOTE_RECEIPTS FOOTNOTE_GAP_DIGEST FOOTNOTE_ASK_PERSON",
    ),
    "Accept uploads": ("slack.md", "FOOTNOTE_UPLOAD*"),
    "Watch folders": (
        "folders.md",
        "FOOTNOTE_INBOX *_SCAN_SECONDS FOOTNOTE_SETTLE_* FOOTNOTE_REST_* FOOTNOTE_ASK_BEFORE_* "
        "FOOTNOTE_DELETE_GRACE_*",
    ),
    "Reach shares": ("sources.md", "FOOTNOTE_SHARE_* FOOTNOTE_SFTP_* FOOTNOTE_SMB_* FOOTNOTE_WEBDAV_*"),
    "Read PDFs": (
        "sizing.md",
        "FOOTNOTE_MAX_* FOOTNOTE_READ_* FOOTNOTE_RENDER_* FOOTNOTE_CONFINEMENT FOOTNOTE_PDF_* FOOTNOTE_OCR* "
        "FOOTNOTE_LAYOUT FOOTNOTE_STOP_AT FOOTNOTE_SENTENCE_VECTORS FOOTNOTE_CHUNK_* FOOTNOTE_VISION_* "
        "FOOTNOTE_METADATA_MODEL FOOTNOTE_LEASE_* FOOTNOTE_RETIRE_*",
    ),
    "Choose the embedder": ("search.md", "FOOTNOTE_EMBED*"),
    "Cite web pages": ("web-pages.md", "FOOTNOTE_WEB_*"),
    "Tune the search": (
        "search.md",
        "FOOTNOTE_CANDIDATES FOOTNOTE_*_WEIGHT FOOTNOTE_RERANK* FOOTNOTE_REWORD* FOOTNOTE_ANSWER_PROBABILITY "
        "FOOTNOTE_OUTDATED_* FOOTNOTE_RECENCY_* FOOTNOTE_PASSAGES_* FOOTNOTE_EVIDENCE_* FOOTNOTE_EXPANSION_*",
    ),
    "Answer with a model": (
        "company.md",
        "OPENAI_* FOOTNOTE_SECOND_* FOOTNOTE_VERIFY FOOTNOTE_ANSWER_SECONDS FOOTNOTE_MODEL_*",
    ),
    "Limit questions": ("slack.md", "FOOTNOTE_*_QUESTIONS FOOTNOTE_QUESTION*"),
    "Retain and erase": ("erasure.md", "FOOTNOTE_*_DAYS FOOTNOTE_SWEEP_*"),
}
SETTINGS_HEAD = """\
# Look up a setting

Copy a line into `.env` where you start Footnote, or set it as an environment variable, or in `footnote.toml`
in the home. The environment wins over `.env`, and `.env` over `footnote.toml`. Unknown names are refused.
`footnote settings` prints all of them as a template.
"""
COMMANDS_HEAD = """\
# Look up a command

Each command takes `--help`. `footnote -v COMMAND` logs progress. Exit status: 0 done, 1 failed, 2 wrong
arguments or settings. With several channels, add `--channel NAME`.
"""


def settings_page() -> str:
    """Return docs/settings.md: the twelve settings that matter first, then all of them by task.

    Raises:
        SystemExit: a setting belongs to no task.
    """
    fields = {
        variable: room.model_fields[name]
        for room in SETTINGS_CLASSES
        for variable, name in room.variables().items()
    }
    left = dict(fields)
    parts = [SETTINGS_HEAD, "## Set these first\n", _table({name: fields[name] for name in FIRST})]
    for task, (page, patterns) in TASKS.items():
        ours = [name for name in left if any(fnmatchcase(name, one) for one in patterns.split())]
        parts += [
            f"## {task}\n",
            f"More: [{page}]({page}).\n",
            _table({name: left.pop(name) for name in ours}),
        ]
    if left:
        raise SystemExit(f"add {', '.join(left)} to a task of {Path(__file__).name}")
    return "\n".join(parts)


def _table(fields: dict[str, FieldInfo]) -> str:
    rows = [
        f"| `{name}` | {f'`{shown}`' if (shown := shown_default(field.default)) else '-'} | "
        f"{_cell(described(field))} |"
        for name, field in fields.items()
    ]
    return "\n".join(["| setting | default | effect |", "|---|---|---|", *rows, ""])


def commands_page() -> str:
    """Return docs/commands.md: each command with its arguments."""
    return "\n".join([COMMANDS_HEAD, *_command_parts(build_parser())])


def _command_parts(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield a section per command, and one per action of a command that has actions."""
    for group in (one for one in parser._actions if isinstance(one, argparse._SubParsersAction)):
        helps = {one.dest: one.help for one in group._choices_actions}
        for name, command in group.choices.items():
            yield f"## {command.prog}\n"
            yield _sentence(helps[name] or "")
            if command.description:
                yield f"{_cell(command.description)}\n"
            if rows := [*map(_row, filter(_is_shown, command._actions))]:
                yield "\n".join(["| argument | effect |", "|---|---|", *rows, ""])
            yield from _command_parts(command)


def _is_shown(action: argparse.Action) -> bool:
    return not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)


def _row(action: argparse.Action) -> str:
    value = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    value = "|".join(action.choices) if action.choices else str(value)
    takes = action.nargs != 0
    shown = " ".join([*action.option_strings[-1:], *([value] if takes else [])])
    return f"| `{_cell(shown)}` | {_cell(action.help or '')} |"


def _sentence(text: str) -> str:
    return f"{_cell(text[:1].upper() + text[1:])}.\n"


def _cell(text: str) -> str:
    """Return text that a table and Markdown show as it is."""
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    (DOCS / "settings.md").write_text(settings_page(), encoding="utf-8")
    (DOCS / "commands.md").write_text(commands_page(), encoding="utf-8")
