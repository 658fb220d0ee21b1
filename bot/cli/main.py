"""The ``footnote`` command: reads arguments and settings, runs one command, turns errors into sentences."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from bot.cli import ask, ingest, listing, serve
from bot.cli.logs import set_up_logging
from storage.errors import SettingsError, StorageError, UnknownChannel

FAILED, USAGE = 1, 2


def build_parser() -> argparse.ArgumentParser:
    """The whole command line with its help texts."""
    parser = argparse.ArgumentParser(
        prog="footnote",
        description="Answers questions from PDFs, and proves every answer with a link to the marked page.",
        epilog="Settings: deploy/env.example. Everything the program keeps lies under FOOTNOTE_HOME.",
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="log what happens, not only what goes wrong"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve.add_parser(commands)
    ingest.add_parser(commands)
    ask.add_parser(commands)
    listing.add_parsers(commands)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = build_parser().parse_args(arguments)
    set_up_logging(options.verbose or options.command == "serve")
    try:
        status: int = asyncio.run(options.run(options))
        return status
    except (SettingsError, UnknownChannel) as error:
        return _complain(error, USAGE)
    except StorageError as error:
        return _complain(error, FAILED)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away, as `head` does: nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _complain(error: Exception, status: int) -> int:
    print(f"footnote: {error}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
