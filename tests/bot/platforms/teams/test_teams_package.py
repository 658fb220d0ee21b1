"""The Teams app package that an admin uploads."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bot.chat.commands.chat_intents import ChatIntent, recognize
from bot.core.models import Language

SCRIPT = Path(__file__).parents[4] / "deploy" / "teams" / "make_package.py"
APP_ID = "12345678-1234-1234-1234-123456789abc"


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script as an admin does."""
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


def test_the_package_contains_the_bots_manifest_and_both_icons(tmp_path: Path) -> None:
    """Ids and URL are filled in; the icons have the sizes that Teams requires."""
    target = tmp_path / "app.zip"
    assert make(APP_ID, "https://pages.acme.example/", str(target)).returncode == 0
    with zipfile.ZipFile(target) as package:
        manifest = json.loads(package.read("manifest.json"))
        icons = {name: package.read(name) for name in ("color.png", "outline.png")}
    named = [manifest["id"], manifest["bots"][0]["botId"], manifest["composeExtensions"][0]["botId"]]
    assert named == [APP_ID] * 3
    assert manifest["validDomains"] == ["pages.acme.example"]
    assert "footnote.example" not in json.dumps(manifest)
    sizes = {name: struct.unpack(">II", icon[16:24]) for name, icon in icons.items()}
    assert sizes == {"color.png": (192, 192), "outline.png": (32, 32)}


@pytest.mark.parametrize(("options", "takes_files"), [((), False), (("--files",), True)])
def test_personal_chats_offer_files_only_if_uploads_are_enabled(
    tmp_path: Path, options: tuple[str, ...], takes_files: bool
) -> None:
    """Shows both settings: a button for files that the bot ignores would be a dead end."""
    target = tmp_path / "app.zip"
    assert make(APP_ID, "https://pages.acme.example", str(target), *options).returncode == 0
    with zipfile.ZipFile(target) as package:
        (bot,) = json.loads(package.read("manifest.json"))["bots"]
    assert bot["supportsFiles"] is takes_files


def test_each_prompt_starter_is_a_command() -> None:
    """What a click sends is understood without a search."""
    manifest = json.loads((SCRIPT.parent / "manifest.json").read_text())
    (prompts,) = manifest["bots"][0]["commandLists"]
    intents = [command_of(one["title"]) for one in prompts["commands"]]
    assert intents == [ChatIntent.HELP, ChatIntent.NEWS, ChatIntent.DOCUMENT_LIST]


def command_of(text: str) -> ChatIntent | None:
    """Return the intent of an English message."""
    command = recognize(text, Language.ENGLISH)
    return command.intent if command else None


def test_without_an_app_id_the_script_prints_its_usage() -> None:
    """A missing argument is a usage error, not a traceback."""
    done = make()
    assert done.returncode == 2
    assert "APP_ID" in done.stderr
