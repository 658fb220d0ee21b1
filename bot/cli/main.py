"""Entry point of the ``footnote`` command: parses arguments, runs one command, reports errors."""

from __future__ import annotations

import argparse
import asyncio
import errno
import importlib
import importlib.metadata
import logging
import os
import sys
from pathlib import Path
from typing import Any

from bot.cli.log_format import set_up_logging
from bot.terminal import escape_output
from storage.errors import SettingsError, StorageError, UnknownChannel

FAILED, USAGE, INTERRUPTED = 1, 2, 130
MAX_DAYS = 3650
MAX_WEEKS = 520
CHANNEL_HELP = "a local channel's name, or a tenant name; optional if there is only one channel"


class _Version(argparse.Action):
    """Action that prints the installed version, which is looked up only on demand."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the version and exit."""
        print(f"footnote {importlib.metadata.version('footnote-bot')}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """Return the argument parser; ``run`` names a command's coroutine as ``module:function``."""
    parser = argparse.ArgumentParser(
        prog="footnote",
        description="Answers questions from PDFs, and proves every answer with a link to the marked page.",
        epilog="`footnote settings` lists all settings. All data is stored under FOOTNOTE_HOME.",
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="log progress, not only warnings and errors"
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_setup(commands)
    _add_serve(commands)
    _add_ingest(commands)
    _add_ask(commands)
    _add_listings(commands)
    _add_records(commands)
    _add_security(commands)
    _add_tokens(commands)
    _add_folders(commands)
    _add_sources(commands)
    _add_erase(commands)
    _add_backup(commands)
    doctor = commands.add_parser(
        "doctor",
        help="check configuration and dependencies, suggest fixes",
        description="Read-only; also works beside a running `footnote serve` and with invalid settings. Each "
        "line is ok, warn or fail; the exit status is 1 if one is fail. No secret is printed.",
    )
    doctor.add_argument(
        "checks", nargs="*", metavar="CHECK", help="only these checks, as in `doctor slack sql`"
    )
    doctor.add_argument("--json", action="store_true", help="one JSON line per finding")
    doctor.set_defaults(run="bot.cli.diagnosis.doctor:doctor")
    reconcile = commands.add_parser(
        "reconcile",
        help="reconcile database, index and stored files, repair differences",
        description="Lost PDFs are copied again from their folders. Exit status 1: one was not found, or "
        "another process is reconciling.",
    )
    reconcile.add_argument("--json", action="store_true", help="one JSON line")
    reconcile.set_defaults(run="bot.cli.folders:reconcile")
    return parser


def _add_setup(commands: Any) -> None:
    demo = commands.add_parser("demo", help="try it: serve two sample PDFs, or a folder of your own")
    samples = Path(__file__).parent / "setup" / "samples"
    demo.add_argument(
        "--docs",
        type=_absolute_path,
        default=samples,
        metavar="FOLDER",
        help="PDFs, at any depth (default: samples)",
    )
    demo.add_argument("--port", type=int, default=8765, help="port to listen on (default 8765)")
    demo.add_argument("--weaviate", default="", metavar="URL", help="embedded, or a server's URL")
    demo.add_argument("--home", type=_absolute_path, metavar="DIR", help="default: ./.footnote/demo")
    demo.set_defaults(run="bot.cli.setup.demo:demo", host="127.0.0.1", inbox=None)
    settings = commands.add_parser(
        "settings", help="print every setting with its default, as a template for .env"
    )
    settings.set_defaults(run="bot.cli.setup.printed_files:print_settings")
    manifest = commands.add_parser("manifest", help="print the app manifest of a chat platform")
    platforms = manifest.add_subparsers(dest="platform", required=True, metavar="PLATFORM")
    slack = platforms.add_parser("slack", help="for Socket Mode, or with a URL for events over HTTP")
    slack.add_argument("url", nargs="?", default="", metavar="URL", help="https://your.host")
    slack.set_defaults(run="bot.cli.setup.printed_files:print_manifest")


def _add_serve(commands: Any) -> None:
    serve = commands.add_parser("serve", help="run everything in one process: console, chat, folders")
    serve.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    serve.add_argument("--port", type=int, help="port to listen on (default 8765)")
    serve.add_argument(
        "--inbox",
        type=Path,
        help="watched folder; each folder in it is a channel (default: inbox/ in the home)",
    )
    serve.set_defaults(run="bot.cli.serve:serve")
    console = commands.add_parser("console", help="print the URL of the running console")
    console.set_defaults(run="bot.cli.serve:print_console_address")


def _add_ingest(commands: Any) -> None:
    ingest = commands.add_parser(
        "ingest", help="read a folder or file once, with progress, until it is searchable"
    )
    ingest.add_argument(
        "path", type=_existing_path, help="a PDF, a folder of PDFs, or a folder of channel folders"
    )
    ingest.add_argument("--channel", help="channel to add them to; default: each folder in PATH is a channel")
    ingest.add_argument(
        "--wait",
        choices=["quick", "full"],
        default="quick",
        help="quick: until searchable by words; full: until searchable by vectors, too (default: quick)",
    )
    ingest.set_defaults(run="bot.cli.ingest:ingest")
    _add_alternative(
        ingest, "--dry-run", "bot.cli.folders:preview_ingest", "show what would happen; write nothing"
    )


def _add_ask(commands: Any) -> None:
    ask = commands.add_parser("ask", help="answer in the terminal, with sources and links")
    ask.add_argument("question", nargs="?", help="the question")
    ask.add_argument("--channel", help=CHANNEL_HELP)
    ask.add_argument(
        "--questions",
        type=Path,
        metavar="FILE.jsonl",
        help='batch: {"id", "question", "channel", "thread"} per line',
    )
    ask.add_argument("--thread", metavar="NAME", help="conversation id; keeps context for follow-ups")
    _add_where(ask)
    ask.add_argument("--json", action="store_true", help="one JSON line per answer")
    ask.set_defaults(run="bot.cli.ask:ask")


def _add_listings(commands: Any) -> None:
    documents = commands.add_parser("documents", help="list a channel's documents with their state")
    documents.add_argument("--channel", help=CHANNEL_HELP)
    _add_where(documents)
    documents.add_argument("--json", action="store_true", help="one JSON line per document")
    documents.set_defaults(run="bot.cli.documents:list_documents")
    _add_alternative(
        documents,
        "--deleted",
        "bot.cli.documents:list_deleted",
        "list deleted documents that are still retained",
    )
    metadata = commands.add_parser("metadata", help="show or correct a document's metadata")
    metadata.add_argument("file", help="its path as `footnote documents` prints it")
    metadata.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="correct a field; empty VALUE: the document has none",
    )
    metadata.add_argument("--undo", action="append", default=[], metavar="FIELD", help="revert a correction")
    metadata.add_argument("--channel", help=CHANNEL_HELP)
    metadata.set_defaults(run="bot.cli.documents:show_metadata")
    recover = commands.add_parser("recover", help="save a copy of a deleted PDF that is still retained")
    recover.add_argument("file", help="its path as `footnote documents --deleted` prints it")
    recover.add_argument("--to", type=Path, metavar="DIR", required=True, help="where to save it")
    recover.add_argument("--channel", help=CHANNEL_HELP)
    recover.set_defaults(run="bot.cli.documents:recover")
    channels = commands.add_parser("channels", help="list all channels with their tenant names")
    channels.add_argument("--json", action="store_true", help="one JSON line per channel")
    channels.set_defaults(run="bot.cli.documents:list_channels")


def _add_records(commands: Any) -> None:
    records = commands.add_parser(
        "records", help="traces of questions: candidates, prompts, drafts, dropped sentences"
    )
    records.add_argument(
        "id", nargs="?", help="a question's id, for its whole record (default: list the latest)"
    )
    records.add_argument("--channel", help=CHANNEL_HELP)
    records.add_argument("--json", action="store_true", help="one JSON line per record")
    records.set_defaults(run="bot.cli.records:show_records")
    feedback = commands.add_parser("feedback", help="feedback on answers")
    kinds = feedback.add_subparsers(dest="action", required=True, metavar="ACTION")
    export = kinds.add_parser("export", help="export as evaluation cases, one JSON line each")
    export.add_argument("--channel", help="only of this channel's answers")
    export.set_defaults(run="bot.cli.records:export_feedback")
    gaps = commands.add_parser("gaps", help="unanswered or disputed questions, grouped")
    gaps.add_argument("--channel", help="only of this channel's questions")
    gaps.add_argument("--days", type=_days, default=30, help="how far back (default 30)")
    gaps.add_argument("--json", action="store_true", help="one JSON line per gap")
    gaps.set_defaults(run="bot.cli.records:list_gaps")
    quality = commands.add_parser("quality", help="quality figures of channels by week")
    quality.add_argument("--channel", help="only this channel")
    quality.add_argument("--weeks", type=_weeks, default=12, help="how far back (default 12)")
    quality.add_argument("--month", metavar="YYYY-MM", help="print the usage of a month instead")
    quality.add_argument("--json", action="store_true", help="one JSON line per channel")
    quality.add_argument("--keep-baseline", action="store_true", help="store these figures as the baseline")
    quality.set_defaults(run="bot.cli.records:show_quality")


def _add_security(commands: Any) -> None:
    audit = commands.add_parser("audit", help="audit log of privileged actions")
    audit.add_argument("--json", action="store_true", help="one JSON line per entry")
    audit.add_argument("--links", action="store_true", help="include opened links")
    audit.set_defaults(run="bot.cli.security.audit:list_audit")
    actions = audit.add_subparsers(metavar="[ACTION]")
    verify = actions.add_parser("verify", help="verify that the audit log was not tampered with")
    verify.add_argument(
        "digest", nargs="?", help="digest printed by an earlier `verify`: check that its entry is still there"
    )
    verify.set_defaults(run="bot.cli.security.audit:verify_audit")
    export = actions.add_parser("export", help="all entries with their digests, one JSON line each")
    export.set_defaults(run="bot.cli.security.audit:export_audit")
    links = commands.add_parser("links", help="revoke links, rotate the signing key")
    ends = links.add_subparsers(dest="action", required=True, metavar="ACTION")
    revoke = ends.add_parser("revoke", help="revoke links now")
    whose = revoke.add_mutually_exclusive_group(required=True)
    whose.add_argument("--channel", help="all links of a channel")
    whose.add_argument("--link", metavar="URL", help="this link, and the others of its answer")
    whose.add_argument("--person", metavar="ID", help="all links in answers to this person: slack:T…:U…")
    revoke.set_defaults(run="bot.cli.security.links:revoke_links")
    rotate = ends.add_parser("rotate", help="rotate the signing key; two rotations invalidate all links")
    rotate.add_argument(
        "--file", type=Path, help="rotate the key in this file, created if missing; mount it on every machine"
    )
    rotate.set_defaults(run="bot.cli.security.links:rotate_key")
    for action in (revoke, rotate):
        action.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _add_tokens(commands: Any) -> None:
    tokens = commands.add_parser(
        "tokens",
        help="tokens of programs that use the HTTP API and the MCP server",
        description="Both are off until there is a token. It opens one channel, or all, and no direct chat.",
    )
    actions = tokens.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="create a token and print it once")
    create.add_argument("name", help="the program that will use it, to tell tokens apart")
    opens = create.add_mutually_exclusive_group(required=True)
    opens.add_argument("--channel", metavar="NAME", help="open this channel only")
    opens.add_argument("--all-channels", action="store_true", help="open all channels")
    create.set_defaults(run="bot.cli.programs.tokens:create_token")
    listed = actions.add_parser("list", help="list tokens, without their secrets")
    listed.add_argument("--json", action="store_true", help="one JSON line per token")
    listed.set_defaults(run="bot.cli.programs.tokens:list_tokens")
    revoke = actions.add_parser("revoke", help="revoke a token now")
    revoke.add_argument("id", type=int, help="its number, as `footnote tokens list` prints it")
    revoke.set_defaults(run="bot.cli.programs.tokens:revoke_token")
    server = commands.add_parser(
        "mcp",
        help="MCP server over standard input, for an AI assistant on this machine",
        description="Needs no token: whoever starts it can read the home. Also works beside `serve`.",
    )
    server.set_defaults(run="bot.cli.programs.mcp:serve_mcp")


def _add_where(command: Any) -> None:
    command.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="filter by metadata (see `footnote metadata`); FIELD!=VALUE excludes; also "
        "effective=2023..2024, date=2023.., version=2.., kind=sop; repeatable",
    )


def _add_folders(commands: Any) -> None:
    folders = commands.add_parser("folders", help="watched folders, their state, and pending approvals")
    folders.add_argument("--json", action="store_true", help="one JSON line per folder")
    folders.set_defaults(run="bot.cli.folders:list_folders")
    _add_alternative(folders, "--check", "bot.cli.folders:check_folders", "check folders.toml for mistakes")
    _add_alternative(
        folders,
        "--dry-run",
        "bot.cli.folders:preview_folders",
        "show what the next scan would do; write nothing",
    )
    actions = folders.add_subparsers(metavar="[ACTION]")
    approve = actions.add_parser("approve", help="approve the deletion of a folder's missing files")
    approve.add_argument("id", type=int, help="the folder's number, as `footnote folders` prints it")
    approve.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    approve.set_defaults(run="bot.cli.folders:approve")


def _add_sources(commands: Any) -> None:
    sources = commands.add_parser("sources", help="approved web pages (web_sources.toml in the home)")
    actions = sources.add_subparsers(dest="action", required=True, metavar="ACTION")
    helps = {
        "check": "check web_sources.toml for mistakes, and list failing and outdated pages",
        "list": "list approved pages with their state",
        "seed": "fetch outdated pages now; `serve` does it automatically",
    }
    for name, text in helps.items():
        action = actions.add_parser(name, help=text)
        action.add_argument("--channel", help="only what this channel's questions may cite")
        action.add_argument("--json", action="store_true", help="one JSON line per page")
        action.add_argument(
            "--dry-run", action="store_true", help="show what would be fetched; fetch nothing"
        )
        action.set_defaults(run=f"bot.cli.sources:{name}_sources")


def _add_erase(commands: Any) -> None:
    erase = commands.add_parser(
        "erase",
        help="permanently erase a document, a channel or a person's data",
        description="Erases from SQL, index, stored files, readings and rendered pages. Answers in chats "
        "that quote it are replaced by a notice. Works with or without a running `footnote serve`. Watched "
        "folders are never changed: a file or channel folder that is still there would come back with the "
        "next scan, so the command refuses; remove it there first. With Weaviate, the channel's index is "
        "rebuilt without the document; until then, questions there get the reply “try again”.",
    )
    erase.add_argument("--document", metavar="FILE", help="its path as `footnote documents` prints it")
    erase.add_argument(
        "--channel",
        metavar="NAME",
        help="the document's channel; without --document: erase the whole channel",
    )
    erase.add_argument(
        "--person",
        metavar="ID",
        help="their questions and feedback: slack:T…:U…, teams:…:…, oidc:HOST:ADDRESS",
    )
    erase.add_argument(
        "--keep-index",
        action="store_true",
        help="do not rebuild Weaviate's index: words stay in its files until it merges them",
    )
    erase.add_argument("--dry-run", action="store_true", help="show what would be erased; change nothing")
    erase.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    erase.add_argument("--json", action="store_true", help="one JSON line")
    erase.set_defaults(run="bot.cli.erasure.erase:erase")


def _add_backup(commands: Any) -> None:
    backup = commands.add_parser(
        "backup",
        help="back up the home to a folder or fsspec URL, also while `serve` runs",
        description="Incremental: only new files are copied. The backup contains the keys that sign links "
        "and encrypt tokens, and people's questions: protect it like the home.",
    )
    backup.add_argument("url", metavar="URL", help="a folder, or a URL such as s3://bucket/folder")
    backup.add_argument("--replace", action="store_true", help="overwrite another home's backup")
    backup.add_argument("--json", action="store_true", help="one JSON line")
    backup.set_defaults(run="bot.cli.backup.backup_home:backup")
    restore = commands.add_parser(
        "restore",
        help="restore a backup into an empty home",
        description="Restores a backup into the home, database and index of the current settings, which may "
        "be other engines than the backup's, and publishes its documents there.",
    )
    restore.add_argument("url", metavar="URL", help="the backup's folder or URL")
    restore.add_argument("--digest", help="digest printed by `footnote backup`; default: ask")
    restore.add_argument(
        "--force",
        action="store_true",
        help="move the home's current contents aside and overwrite its database",
    )
    restore.add_argument("--json", action="store_true", help="one JSON line")
    restore.set_defaults(run="bot.cli.backup.backup_home:restore")


def _add_alternative(command: argparse.ArgumentParser, option: str, run: str, help: str) -> None:
    """Add an option that makes the command run another coroutine."""
    command.add_argument(option, action="store_const", dest="run", const=run, help=help)


def _days(text: str) -> float:
    days = float(text)
    if not 0 < days <= MAX_DAYS:
        raise argparse.ArgumentTypeError(f"a number of days up to {MAX_DAYS}")
    return days


def _weeks(text: str) -> int:
    weeks = int(text)
    if not 0 < weeks <= MAX_WEEKS:
        raise argparse.ArgumentTypeError(f"a number of weeks up to {MAX_WEEKS}")
    return weeks


def _absolute_path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _existing_path(text: str) -> Path:
    path = Path(text)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"no such file or folder: {text}")
    return path


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    os.umask(0o077)  # the files that we write are private
    escape_output()
    parser = build_parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        return USAGE
    options = parser.parse_args(arguments)
    set_up_logging(verbose=options.verbose, for_machines=options.command in ("serve", "demo"))
    if not all(map(_is_readable, vars(options).values())):
        return _print_error("an argument is not UTF-8", USAGE)
    try:
        # Lazy import: each command loads only what it needs, and `--help` nothing.
        module, function = options.run.split(":")
        status: int = asyncio.run(getattr(importlib.import_module(module), function)(options))
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does; without this, the flush at exit would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:  # last resort: users get a sentence, not a traceback
        return _report_error(error)


def _report_error(error: Exception) -> int:
    """Print one sentence for an error, with ``-v`` also its traceback, and return the exit status."""
    if isinstance(error, StorageError):
        return _print_error(error, USAGE if isinstance(error, SettingsError | UnknownChannel) else FAILED)
    logging.getLogger(__name__).info("unexpected", exc_info=error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):  # has no file name
        return _print_error("the disk is full: make room where FOOTNOTE_HOME lies", FAILED)
    if isinstance(error, OSError) and error.filename:
        return _print_error(f"{error.strerror}: {error.filename}", FAILED)
    return _print_error(f"failed unexpectedly ({type(error).__name__}); `footnote -v` shows where", FAILED)


def _is_readable(value: object) -> bool:
    """True unless an argument is a string that was not valid UTF-8: it then has lone surrogates."""
    return not isinstance(value, str) or not any("\ud800" <= letter <= "\udfff" for letter in value)


def _print_error(error: Exception | str, status: int) -> int:
    redactor = importlib.import_module("bot.operations.doctor.redaction").known_redactor()
    print(f"footnote: {redactor.clean(str(error))}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
