"""Installation files: image, compose file and systemd unit match the program and its docs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from engines.images import COMPOSE, BuiltImage
from engines.support.json_schemas import validator
from engines.support.ports import free_port
from harness.waiting import until
from sources import ROOT

from storage.index.weaviate.process import WEAVIATE_VERSION

CONTAINERFILE = ROOT / "deploy" / "container" / "Containerfile"
UNITS = ROOT / "deploy" / "systemd"
SETTINGS = (ROOT / "deploy" / "env.example").read_text(encoding="utf-8")
MAX_IMAGE_MB = 1400
SAMPLE = ROOT / "bot" / "cli" / "setup" / "samples" / "SOP-IT-04-Backup-and-Restore.pdf"


@pytest.fixture
def compose() -> Any:
    """Return the parsed compose file."""
    return yaml.safe_load((ROOT / "deploy" / "compose" / "compose.yaml").read_text(encoding="utf-8"))


def test_compose_starts_the_tested_weaviate_as_documented(compose: Any) -> None:
    """Shows that version and access rules match docs/weaviate.md; without them Weaviate is open."""
    weaviate = compose["services"]["weaviate"]
    assert weaviate["image"] == f"${{WEAVIATE_IMAGE:-semitechnologies/weaviate:{WEAVIATE_VERSION}}}"
    page = (ROOT / "docs" / "weaviate.md").read_text(encoding="utf-8")
    (secrets,) = re.findall(r"for name in ([A-Z_ ]+); do", page)
    documented = [*re.findall(r"-e ([A-Z_]+)=", page), *secrets.split()]
    assert set(weaviate["environment"]) == set(documented)


def test_compose_publishes_no_port_and_contains_no_password(compose: Any) -> None:
    """Shows that the only published port is on localhost, and that all secrets are required variables."""
    ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:8765:8765"]
    secrets = [
        value
        for service in compose["services"].values()
        for name, value in service["environment"].items()
        if re.search(r"PASSWORD|KEYS?$|DATABASE_URL", name)
    ]
    assert len(secrets) == 7
    assert all(":?set it in .env}" in secret for secret in secrets)


def test_every_service_of_compose_is_confined(compose: Any) -> None:
    """Shows that a compromised service can neither write, gain privileges, nor exhaust the machine."""
    for service in compose["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not {"cap_add", "privileged", "network_mode", "pid", "ipc"} & service.keys()
        assert "tmp" in [one.strip("/") for one in service["tmpfs"]]
        assert re.fullmatch(r"\$\{[A-Z0-9]+_MEMORY:-\d+g\}", service["mem_limit"])
        assert 0 < service["pids_limit"] <= 1024


def test_data_services_have_an_internal_network(compose: Any) -> None:
    """Shows that only the bot has both networks, and that none uses compose's default network."""
    places = {name: set(service["networks"]) for name, service in compose["services"].items()}
    assert places.pop("bot") == {"front", "back"}
    assert all(place == {"back"} for place in places.values())
    assert compose["networks"] == {"front": None, "back": {"internal": True}}


def test_each_image_is_pinned_by_one_variable(compose: Any) -> None:
    """Shows that a digest can replace each version, including our base image, as documented."""
    build = compose["services"]["bot"]["build"]["args"]["BASE"]
    images = [build, *(service["image"] for service in compose["services"].values())]
    found = [re.fullmatch(r"\$\{([A-Z0-9]+_IMAGE):-([a-z0-9./-]+)(:[\w.-]+)?\}", image) for image in images]
    pinned = {one[1]: one[3] for one in found if one}
    assert len(pinned) == len(images)
    assert [name for name, tag in pinned.items() if tag in (None, ":latest")] == ["BOT_IMAGE"]
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert "docker buildx imagetools inspect" in page
    assert all(f"`{name}`" in page for name in pinned)


def test_the_bots_store_is_the_bucket_created_by_compose(compose: Any) -> None:
    """Shows that URL, account and bucket match the S3 service."""
    bot, store = compose["services"]["bot"]["environment"], compose["services"]["s3"]
    bucket = bot["FOOTNOTE_BLOBS"].removeprefix("s3://")
    assert [volume.partition(":")[2] for volume in store["volumes"]] == [f"/data/{bucket}"]
    assert bot["AWS_ENDPOINT_URL"] == "http://s3:7070"
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        assert bot[f"AWS_{name}"] == store["environment"][f"ROOT_{name}"]


def test_image_and_unit_set_only_settings_that_exist(compose: Any) -> None:
    """Shows that renamed settings are renamed there, too."""
    texts = "".join(path.read_text(encoding="utf-8") for path in (CONTAINERFILE, *UNITS.iterdir()))
    names = set(re.findall(r"\b(FOOTNOTE_[A-Z_]+)=", texts)) | set(compose["services"]["bot"]["environment"])
    assert {name for name in names if f"\n#{name}=" not in SETTINGS} == set()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("name", ["footnote.service", "footnote-backup.service", "footnote-backup.timer"])
def test_systemd_accepts_the_units_and_rates_them_hardened(name: str, tmp_path: Path) -> None:
    """Shows that no line is misspelt, and that the exposure score matches docs/install.md."""
    for unit in UNITS.iterdir():
        text = unit.read_text(encoding="utf-8").replace("/opt/footnote/.venv/bin/footnote", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    verified = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / name], capture_output=True, text=True, check=False
    )
    assert [line for line in verified.stderr.splitlines() if name in line] == []
    if name.endswith(".service"):
        command = ["systemd-analyze", "security", "--offline=true", "--threshold=25", "--no-pager"]
        judged = subprocess.run([*command, tmp_path / name], capture_output=True, text=True, check=False)
        assert judged.returncode == 0, judged.stdout[-300:]


@pytest.mark.long
@pytest.mark.engine("images")
def test_the_compose_file_satisfies_its_schema(compose: Any) -> None:
    """Shows that every key is known to compose."""
    schema = json.loads((COMPOSE.folder / "schema" / "compose-spec.json").read_text(encoding="utf-8"))
    validator(schema, draft=7).validate(compose)


@pytest.mark.long
@pytest.mark.engine("images")
@pytest.mark.timeout(1200)
async def test_the_image_answers_on_a_read_only_root(
    image: BuiltImage, tmp_path: Path, record_property: Any
) -> None:
    """Shows that it starts as its own user, answers, and writes only to its home and /tmp."""
    port, began = free_port(), time.monotonic()
    megabytes = sum(path.lstat().st_size for path in image.folder.rglob("*") if path.is_file()) / 1e6
    assert megabytes < MAX_IMAGE_MB
    home = tmp_path / "home"
    (home / "inbox" / "handbook").mkdir(parents=True)
    shutil.copy(SAMPLE, home / "inbox" / "handbook")
    for folder in (home / "inbox", home / "inbox" / "handbook"):
        shutil.chown(folder, 10001, 10001)
    with image.start(home, "footnote", "serve", "--port", str(port)) as serving:
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as browser:

                async def status(path: str) -> int | None:
                    try:
                        async with browser.get(path) as response:
                            return response.status
                    except aiohttp.ClientError:
                        return None

                async def is_ready() -> bool:
                    return await status("/readyz") == 200

                await until(is_ready)
                seconds = time.monotonic() - began
                assert await status("/") == 404, "the console is served in a container"
            health = _health_command().replace("8765", str(port))
            assert image.run(home, "sh", "-c", health) == ""

            async def answer() -> str | None:
                said = image.run(home, "footnote", "ask", "--channel", "handbook", "When do backups run?")
                return said if "2:00 AM" in said else None

            assert "[1] p. 1" in await until(answer, every=2)
            written = image.run(home, "sh", "-c", "touch /opt/footnote/new /etc/new 2>&1; id -u; ls /tmp")
            assert written.count("Read-only file system") == 2
            assert "\n10001\n" in written
        finally:
            image.stop(serving)
    record_property("table", f"image: {megabytes:.0f} MB, ready after {seconds:.1f} s")


def _health_command() -> str:
    """Return the image's health check as a shell command."""
    (found,) = re.findall(r"^    CMD (\[.*\])$", CONTAINERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    return shlex.join(json.loads(found))
