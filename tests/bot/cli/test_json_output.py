"""JSON output: all lines of a command have the same shape."""

from pathlib import Path

from bot.cli.json_output import folder_line, inbox_line
from storage.folders.folder_status import FolderStatus


def test_the_inbox_has_a_line_of_the_same_keys_as_a_folder() -> None:
    """Shows that scripts can parse ``footnote folders --json`` without distinguishing kinds of lines."""
    folder = FolderStatus(1, 2, "lo_x", "x", "/inbox/x", "inbox", True, None, 3, 0)
    inbox = inbox_line(Path("/inbox"), {"loose.pdf": "It is not in a channel's folder."})
    assert list(inbox) == list(folder_line(folder))
    assert (inbox["folder"], inbox["location"], list(inbox["unsupported_files"])) == (
        None,
        "/inbox",
        ["loose.pdf"],
    )
