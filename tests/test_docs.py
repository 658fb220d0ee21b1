"""The docs name existing files, settings and commands, read well, and build as a site."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

from harness.tables import for_each
from sources import ROOT, modules

from bot.cli.main import build_parser

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / ".github").glob("*.md")])
FILE = re.compile(r"`([\w./-]+\.(?:py|md|sh|toml|txt|json|example))`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
SETTING = re.compile(r"\b(FOOTNOTE_[A-Z0-9_]+)\b")
COMMAND = re.compile(r"(?:^|[`/])footnote ([a-z]+)((?: [a-z]+| --[a-z-]+| [A-Z\"][^ `]*)*)", re.MULTILINE)
MAKE = re.compile(r"(?:^ *|`)make ([a-z-]+)", re.MULTILINE)
GLOSSARY_ROW = re.compile(r"^\| [^|]+ \| [^|]+ \| (`[^|]+`) \|$", re.MULTILINE)
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
MADE_AT_RUN_TIME = {
    "chaos-table.txt",
    "folders.toml",
    "footnote-home.txt",
    "footnote.toml",
    "glossary.toml",
    "link_keys.json",
    "openapi.json",
    "sbom.json",
    "serve.json",
    "state.json",
    "token_keys.json",
    "web_sources.toml",
}
SHELL = re.compile(r"^ *```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
# Preceded by a program: a line that is only an assignment belongs in a file.
SECRET_ARGUMENT = re.compile(r"\S+ .*(?:TOKEN|SECRET|PASSWORD|KEYS?)=\S|env \$\(")
NO_SETTINGS = {"FOOTNOTE_HOME", "FOOTNOTE_"}
LISTED = (ROOT / "deploy" / "env.example").read_text(encoding="utf-8")
# Pages that programs write, from texts with tests of their own.
GENERATED = ("settings.md", "commands.md", "licences.md")
WRITTEN = [
    ROOT / "README.md",
    *(one for one in PAGES if one.parent == ROOT / "docs" and one.name not in GENERATED),
]
SENTENCE_WORDS = 30
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
TARGET_OF_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
# Paragraphs, cells, list items and headings end a sentence, too.
BLOCK_END = re.compile(r"\n\s*\n|(?<!\\)\||^ *(?:[*-]|\d+\.) |^#.*$", re.MULTILINE)
SENTENCE_END = re.compile(r"(?<=[.!?])[\"”)*]*\s+")
FENCED_AT_TOP = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# MkDocs shows these as text, unlike GitHub: blocks in a list, indented by three or touching the next item.
NOT_NESTED = re.compile(r"^   (?:```|\|)|^    \S.*\n\d+\. ", re.MULTILINE)
OURS = [
    path.relative_to(ROOT)
    for folder in ("bot", "ingestion", "storage", "tests", "tools", "deploy", "docs")
    for path in (ROOT / folder).rglob("*")
    if "__pycache__" not in path.parts
]


def is_there(name: str) -> bool:
    """True if a file of ours has this path or ends with it, since a page may omit the folder."""
    parts = Path(name).parts
    return (ROOT / name).exists() or any(path.parts[-len(parts) :] == parts for path in OURS)


def commands(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    """Return the commands of a parser by name."""
    groups = [one for one in parser._actions if isinstance(one, _SubParsersAction)]
    return {name: command for group in groups for name, command in group.choices.items()}


@for_each("page", PAGES)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    """Shows that no page names a renamed or removed module."""
    names = set(FILE.findall(page.read_text(encoding="utf-8")))
    made = {name for name in names if Path(name).name in MADE_AT_RUN_TIME}
    assert sorted(name for name in names - made if not is_there(name)) == []


@for_each("page", PAGES)
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    """Shows that every relative link leads to an existing page."""
    links = set(LINK.findall(page.read_text(encoding="utf-8")))
    assert sorted(link for link in links if not (page.parent / link).exists()) == []


@for_each("page", PAGES)
def test_every_setting_that_a_page_names_can_be_set(page: Path) -> None:
    """Shows that no page names a setting that would be refused as unknown."""
    names = set(SETTING.findall(page.read_text(encoding="utf-8"))) - NO_SETTINGS
    assert sorted(name for name in names if f"#{name}=" not in LISTED) == []


@for_each("page", PAGES)
def test_every_command_in_a_page_is_valid(page: Path) -> None:
    """Shows that commands and options are spelled correctly."""
    known = commands(build_parser())
    unknown = []
    for name, rest in COMMAND.findall(page.read_text(encoding="utf-8")):
        options = set(known[name]._option_string_actions) if name in known else set()
        for action, command in (commands(known[name]) if name in known else {}).items():
            options |= set(command._option_string_actions) if action in rest.split() else set()
        if name in known and not set(re.findall(r"--[a-z-]+", rest)) - options:
            continue
        unknown.append(f"{name}{rest}")
    assert unknown == []


@for_each("page", PAGES)
def test_every_target_that_a_page_gives_is_in_the_makefile(page: Path) -> None:
    """Shows that every target in a page exists."""
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    assert sorted(set(MAKE.findall(page.read_text(encoding="utf-8"))) - targets) == []


@for_each("page", PAGES)
def test_no_command_in_a_page_contains_a_secret(page: Path) -> None:
    """Arguments are visible to all users and kept in shell histories: secrets come from files."""
    text = page.read_text(encoding="utf-8")
    lines = [line.partition("#")[0] for block in SHELL.findall(text) for line in block.splitlines()]
    assert [line for line in lines if SECRET_ARGUMENT.search(line)] == []


def sentences(text: str) -> list[list[str]]:
    """Return the words of each sentence of a page; code counts as a word, what is fenced as none."""
    plain = TARGET_OF_LINK.sub(r"\1", CODE.sub("code", FENCED.sub("\n\n", text)))
    blocks = BLOCK_END.split(plain)
    return [re.findall(r"\w[\w'’.,-]*", one) for block in blocks for one in SENTENCE_END.split(block)]


@for_each("page", WRITTEN)
def test_no_sentence_of_a_page_is_long(page: Path) -> None:
    """Shows that a sentence has at most 30 words."""
    found = sentences(page.read_text(encoding="utf-8"))
    assert [" ".join(words) for words in found if len(words) > SENTENCE_WORDS] == []


@for_each("page", WRITTEN)
def test_blocks_in_lists_are_nested_for_the_site(page: Path) -> None:
    """Shows that code and tables in numbered steps are indented by four, and end with a blank line."""
    assert NOT_NESTED.findall(FENCED_AT_TOP.sub("", page.read_text(encoding="utf-8"))) == []


@for_each(("page", "make"), [("settings.md", "settings_page"), ("commands.md", "commands_page")])
def test_the_references_are_those_of_the_program(page: str, make: str) -> None:
    """Shows that every setting and argument is on its page as the program describes it."""
    program = runpy.run_path(str(ROOT / "deploy" / "docs" / "make_references.py"))
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert written == program[make](), "make format writes it again"


def build_site(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build a site as `make docs` does."""
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        config,
        "--site-dir",
        site,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    """Shows that each page is in the navigation, and that each link and anchor leads somewhere."""
    built = build_site(ROOT / "mkdocs.yml", tmp_path)
    assert built.returncode == 0, built.stderr
    assert len(list(tmp_path.glob("*.html"))) > len(WRITTEN)
    assert "](../" not in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_broken_anchor_fails_the_site(tmp_path: Path) -> None:
    """Shows that the check above can fail."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Page\n\n[Link](#nowhere)\n")
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\nhooks: []\nextra_css: []\nnav: [index.md]\n")
    built = build_site(config, tmp_path / "site")
    assert (built.returncode, "#nowhere" in built.stderr) == (1, True)


def test_the_glossary_names_classes_that_exist() -> None:
    """Each word of the glossary leads to the class that is it."""
    classes = {
        node.name for module in modules() for node in module.tree.body if isinstance(node, ast.ClassDef)
    }
    rows = GLOSSARY_ROW.findall((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))
    assert len(rows) >= 60
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} - classes == set()


def test_the_patterns_find_what_they_look_for() -> None:
    """Shows that the checks above can fail."""
    assert FILE.findall("`ingestion/gone.py` and `x.y`") == ["ingestion/gone.py"]
    assert not is_there("ingestion/gone.py")
    assert LINK.findall("[a](docs/a.md#b) [c](https://d.e)") == ["docs/a.md"]
    assert MAKE.findall("`make nothing TESTS=x`\nmake test") == ["nothing", "test"]
    assert COMMAND.findall("`footnote folders --chekc`")[0] == ("folders", " --chekc")
    page = "# A\n\nOne `x y`. Two\n[three](a.md) four.\n* Five"
    assert [len(one) for one in sentences(page) if one] == [2, 3, 1]
    assert NOT_NESTED.search("1. Step\n\n   ```sh")
    assert NOT_NESTED.search("    ```\n2. Step")
