"""A home with its PDFs and readings in S3: reading, answering, outage and migration, by command line."""

from __future__ import annotations

import json
import shutil
from urllib.parse import urlsplit

import aiohttp
import pytest
from engines.s3 import Bucket, RealS3
from engines.support.ports import free_port
from harness.program import SAMPLES, Program
from harness.waiting import until

QUESTION = "When do backups run?"

pytestmark = [pytest.mark.engine("s3"), pytest.mark.long]


def settings(server: RealS3, location: str) -> dict[str, str]:
    """Return the settings of the bucket."""
    account = {name.upper(): value for name, value in server.settings.items()}
    return {"FOOTNOTE_BLOBS": location, **account}


def forget(program: Program) -> None:
    """Delete all local copies, as on another machine."""
    for name in ("blobs", "readings", "images"):
        shutil.rmtree(program.home / name, ignore_errors=True)


def test_a_machine_without_copies_answers_from_the_store(program: Program, s3_server: RealS3) -> None:
    """Covers reading into S3, an answer on an empty disk, one without the store, and doctor."""
    bucket = s3_server.place()
    program.environment |= settings(s3_server, bucket.location)
    read = program.run("ingest", str(SAMPLES), "--channel", "it", "--wait", "full")
    assert read.returncode == 0, read.stderr
    kinds = [key.partition("/")[0] for key in bucket.keys()]
    assert {"blobs", "readings", "footnote-home.txt"} == set(kinds)
    forget(program)
    answer = program.ask(QUESTION, "it")
    assert (answer["state"], "2:00" in answer["text"]) == ("passages", True), answer
    nowhere = {**program.environment, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"}
    cut_off = Program(program.home, nowhere)
    again = cut_off.ask(QUESTION, "it")
    quotes = [[one["quote"] for one in each["citations"]] for each in (answer, again)]
    assert quotes[0] == quotes[1], "what was copied answers"
    forget(program)
    failed = cut_off.run("ask", QUESTION, "--channel", "it", "--json")
    assert (failed.returncode, json.loads(failed.stdout)["state"]) == (1, "failed"), failed.stderr
    told = [json.loads(line) for line in cut_off.run("doctor", "blobs", "--json").stdout.splitlines()]
    assert [(one["name"], one["state"]) for one in told] == [("blobs", "fail")]
    told = [json.loads(line) for line in program.run("doctor", "blobs", "--json").stdout.splitlines()]
    assert [(one["name"], one["state"]) for one in told] == [("blobs", "ok")]


async def test_a_page_rendered_once_needs_no_pdf(program: Program, s3_server: RealS3) -> None:
    """Shows that another machine gets the page image from the store."""
    bucket = s3_server.place()
    program.environment |= settings(s3_server, bucket.location)
    read = program.run("ingest", str(SAMPLES), "--channel", "it", "--wait", "full")
    assert read.returncode == 0, read.stderr
    link = urlsplit(program.ask(QUESTION, "it")["citations"][0]["url"]).path
    first = await picture(program, link, bucket)
    forget(program)
    assert await picture(program, link, bucket) == first
    assert not list((program.home / "blobs").glob("??/*")), "no PDF was copied"


async def picture(program: Program, link: str, bucket: Bucket) -> bytes:
    """Return a page image from a newly started service, which ends once the store has the image."""
    async with program.serving(), aiohttp.ClientSession() as session:
        async with session.get(f"{program.url}{link}/p/2@1x") as reply:
            assert (reply.status, reply.content_type.partition("/")[0]) == (200, "image")
            data = await reply.read()

        async def is_sent() -> bool:
            return any(key.startswith("images/") for key in bucket.keys())

        await until(is_sent)
    return data


def test_reconcile_moves_a_home_into_the_store(with_samples: Program, s3_server: RealS3) -> None:
    """Shows that local files are uploaded, and that a home does not silently revert to disk."""
    program, bucket = with_samples, s3_server.place()
    documents = len(program.documents("it"))
    program.environment |= settings(s3_server, bucket.location)
    compared = program.run("reconcile")
    assert compared.returncode == 0, compared.stderr
    assert len(bucket.keys()) >= 1 + 2 * documents, compared.stdout
    forget(program)
    assert program.ask(QUESTION, "it")["state"] == "passages"
    del program.environment["FOOTNOTE_BLOBS"]
    refused = program.run("reconcile")
    assert (refused.returncode, "set it back" in refused.stderr) == (1, True)
