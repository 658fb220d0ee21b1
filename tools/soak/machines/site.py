"""Site of six machines as processes: three bots and three workers that share engines and nothing else.

Each has a home, a port, and its own proxies in front of PostgreSQL, Weaviate and S3, so that it alone can be
cut off from any of them. The PDFs are in a folder that all machines see, like a share.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engines.postgres import RealPostgres, database_of
from engines.s3 import Bucket
from engines.toxiproxy import Proxy, RealToxiproxy
from engines.weaviate import RealWeaviate
from fakes.tiny_embedder import write_embedder
from harness.forks import Fork
from harness.program import Program

from tools.soak.rounds.pairs import HASTE
from tools.soak.rounds.world import WORDS

EACH_ROLE = 3
SECRET = "signing-secret-of-the-test"
END_SECONDS = 60
# The grace period exceeds the duration of a question over slow links.
SETTINGS = {
    **HASTE,
    "FOOTNOTE_LEASE_SECONDS": "5",
    "FOOTNOTE_RETIRE_GRACE_SECONDS": "10",
    "FOOTNOTE_INDEX_TIMEOUT": "3",
    "FOOTNOTE_OCR": "false",
    "FOOTNOTE_RECEIPTS": "off",
    "SLACK_BOT_TOKEN": "xoxb-test",
    "SLACK_SIGNING_SECRET": SECRET,
    "OMP_NUM_THREADS": "1",
}


@dataclass
class Machine:
    """A process with its own links to the engines."""

    name: str
    program: Program
    # Engine -> proxies in front of it.
    links: dict[str, Sequence[Proxy]]
    process: Fork | None = None

    async def start(self) -> None:
        """Start the process; returns before it is ready."""
        self.process = await asyncio.to_thread(self.program.start)

    async def until_ready(self) -> None:
        """Wait until it accepts questions, or reads."""
        assert self.process is not None
        await self.program.until_ready(self.process)

    def kill(self) -> None:
        """Kill the process with ``kill -9``; its children die with it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(END_SECONDS)

    async def end(self) -> None:
        """Terminate the process, like an update does; the exit must be clean."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        status = await asyncio.to_thread(self.process.wait, END_SECONDS)
        assert status == 0, f"{self.name} ended with {status}:\n{self.program.log[-4000:]}"


@dataclass
class Site:
    """The engines that all machines share."""

    # Folder of the homes; its ``share`` contains the watched folders.
    folder: Path
    postgres: RealPostgres
    weaviate: RealWeaviate
    bucket: Bucket
    toxiproxy: RealToxiproxy
    slack_url: str
    database: str = ""
    machines: list[Machine] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.database = database_of(self.postgres.make_database())
        write_embedder(self.folder / "embedder", WORDS)
        for role in ("bot", "worker"):
            self.machines += [self._machine(role, number + 1) for number in range(EACH_ROLE)]

    @property
    def share(self) -> Path:
        """Folder that all machines see."""
        return self.folder / "share"

    @property
    def bots(self) -> list[Machine]:
        """Machines that answer questions."""
        return self.machines[:EACH_ROLE]

    @property
    def workers(self) -> list[Machine]:
        """Machines that read."""
        return self.machines[EACH_ROLE:]

    def copy_folder_map(self) -> None:
        """Copy the same ``folders.toml`` to each machine."""
        for machine in self.machines:
            machine.program.home.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.share / "folders.toml", machine.program.home)

    def _machine(self, role: str, number: int) -> Machine:
        name = f"{role} {number}"
        assert self.postgres.port is not None
        ports = {
            "PostgreSQL": [self.postgres.port],
            "Weaviate": [self.weaviate.identity.ports.rest, self.weaviate.grpc_port],
            "S3": [self.bucket.server.port],
        }
        links = {
            engine: [self.toxiproxy.proxy(f"{role}{number}-{engine}-{port}", port) for port in behind]
            for engine, behind in ports.items()
        }
        (sql,), (rest, grpc), (s3,) = links.values()
        account = {key.upper(): value for key, value in self.bucket.server.settings.items()}
        environment = {
            **SETTINGS,
            **account,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{s3.port}",
            "DATABASE_URL": self.postgres.url_at(sql.port, self.database),
            "FOOTNOTE_BLOBS": self.bucket.location,
            "FOOTNOTE_EMBEDDER": str(self.folder / "embedder"),
            "FOOTNOTE_INBOX": str(self.share / "inbox"),
            "FOOTNOTE_ROLE": role,
            "FOOTNOTE_WEAVIATE_GRPC_PORT": str(grpc.port),
            "SLACK_API_URL": self.slack_url,
            "WEAVIATE_API_KEY": self.weaviate.api_key,
            "WEAVIATE_URL": f"http://127.0.0.1:{rest.port}",
        }
        home = self.folder / name.replace(" ", "")
        return Machine(name, Program(home, environment), links)
