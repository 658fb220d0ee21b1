"""PostgreSQL: row locks next to one advisory lock, and recovery from outages."""

import asyncio
from contextlib import suppress

import pytest
from engines.postgres import PASSWORD, RealPostgres
from harness.waiting import until
from samples.databases import keep, names_in
from sqlalchemy import text

from storage.errors import DatabaseUnavailable
from storage.sql.database import Database
from storage.sql.tables import FactRow

pytestmark = pytest.mark.engine("postgres")


@pytest.fixture
def database_url(postgres_url: str) -> str:
    """PostgreSQL only."""
    return postgres_url


async def write(database: Database, name: str, value: str) -> None:
    """Update a row under its lock."""
    async with database.transaction(exclusive=False) as session:
        fact = await session.get_one(FactRow, name, with_for_update=True)
        fact.value = value


async def test_transactions_with_row_locks_run_concurrently(database: Database) -> None:
    """Shows that they do not wait for an exclusive transaction either."""
    await keep(database, "a")
    await keep(database, "b")
    async with database.transaction(), database.transaction(exclusive=False) as session:
        await session.get_one(FactRow, "a", with_for_update=True)
        await asyncio.wait_for(write(database, "b", "changed"), 30)
    async with database.snapshot() as session:
        assert (await session.get_one(FactRow, "b")).value == "changed"


async def test_an_exclusive_transaction_locks_from_its_first_line(
    database: Database, database_url: str
) -> None:
    """Shows that another process waits before the first statement, and times out."""
    impatient = await Database.open(database_url, busy_seconds=0.2)
    async with database.transaction():
        with pytest.raises(DatabaseUnavailable, match="locked"):
            await keep(impatient, "late")
        await keep(impatient, "beside", exclusive=False)
    await keep(impatient, "later")
    assert await names_in(database) == {"beside", "later"}
    await impatient.aclose()


async def test_waiting_for_the_lock_does_not_exhaust_the_pool(database: Database) -> None:
    """Shows that a queue longer than the pool does not delay a transaction that needs only its row."""
    async with database.transaction():
        waiting = [asyncio.create_task(keep(database, str(number))) for number in range(40)]
        await asyncio.sleep(0)
        await asyncio.wait_for(keep(database, "beside", exclusive=False), 30)
    await asyncio.gather(*waiting)
    assert len(await names_in(database)) == 41


async def test_a_deadlock_fails_one_of_the_two(database: Database) -> None:
    """Shows that it is reported as an outage that a retry heals."""
    await keep(database, "a")
    await keep(database, "b")
    both_hold = asyncio.Barrier(2)

    async def cross(first: str, second: str) -> None:
        async with database.transaction(exclusive=False) as session:
            await session.get_one(FactRow, first, with_for_update=True)
            await both_hold.wait()
            await session.get_one(FactRow, second, with_for_update=True)

    ended = await asyncio.gather(cross("a", "b"), cross("b", "a"), return_exceptions=True)
    assert sorted(type(one).__name__ for one in ended) == ["DatabaseUnavailable", "NoneType"]
    assert "conflict with another" in str(next(one for one in ended if one))


async def test_a_killed_server_is_an_outage_that_recovers(database: Database, postgres: RealPostgres) -> None:
    """Shows that after kill -9 and a restart the same database object works, with all committed rows."""
    await keep(database, "before")

    async def write_through_a_kill() -> None:
        async with database.transaction() as session:
            session.add(FactRow(name="half", value=""))
            await session.flush()
            postgres.kill()

    try:
        with pytest.raises(DatabaseUnavailable):
            await write_through_a_kill()
        with pytest.raises(DatabaseUnavailable, match="does not answer"):
            await names_in(database)
        with pytest.raises(DatabaseUnavailable, match="does not answer"):
            await keep(database, "during", exclusive=False)
    finally:
        postgres.start()
    await keep(database, "after")
    assert await names_in(database) == {"before", "after"}


async def test_a_hung_server_is_an_outage_within_seconds(database: Database, postgres: RealPostgres) -> None:
    """Shows that queries time out, and that its recovery is noticed."""
    await keep(database, "before")
    assert await names_in(database) == {"before"}
    postgres.pause()
    try:
        waiting = {
            asyncio.create_task(names_in(database)),
            asyncio.create_task(keep(database, "alone")),
            asyncio.create_task(keep(database, "beside", exclusive=False)),
        }
        done, hanging = await asyncio.wait(waiting, timeout=30)
    finally:
        postgres.resume()
    assert not hanging
    assert {type(one.exception()) for one in done} == {DatabaseUnavailable}

    async def is_back() -> bool:
        with suppress(DatabaseUnavailable):
            await keep(database, "after")
            return True
        return False

    await until(is_back)
    assert await names_in(database) == {"before", "after"}


async def test_a_server_restart_between_transactions_is_transparent(
    database: Database, postgres: RealPostgres
) -> None:
    """Shows that connections closed by a restart are replaced before use."""
    await keep(database, "before")
    assert await names_in(database) == {"before"}
    try:
        postgres.stop()
    finally:
        postgres.start()
    await keep(database, "after")
    assert await names_in(database) == {"before", "after"}


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("53100", "disk"),
        ("53200", "memory"),
        ("57P01", "starting or stopping"),
        ("40001", "conflict with another"),
        ("58030", "disk"),
        ("XX001", "backup"),
    ],
)
async def test_server_errors_become_messages(database: Database, state: str, sentence: str) -> None:
    """Shows that each class of operational errors is an outage with its cause."""
    raised = f"DO $$ BEGIN RAISE EXCEPTION 'trouble' USING ERRCODE = '{state}'; END $$"
    with pytest.raises(DatabaseUnavailable, match=sentence):
        async with database.transaction() as session:
            await session.execute(text(raised))
    await keep(database, "next")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ((f":{PASSWORD}@", ":wrong-word@"), "user and password"),
        (("@/home_", "@/gone_"), "does not exist"),
        (("footnote-pg-", "footnote-gone-"), "does not answer"),
    ],
)
async def test_a_wrong_url_says_what_to_check(
    postgres_url: str, change: tuple[str, str], sentence: str
) -> None:
    """A wrong password, database or address is named without quoting the URL."""
    url = postgres_url.replace(*change)
    assert url != postgres_url
    with pytest.raises(DatabaseUnavailable, match=sentence) as caught:
        await Database.open(url)
    assert PASSWORD not in str(caught.value)
    assert "wrong-word" not in str(caught.value)


async def test_a_connection_limit_is_reported(postgres: RealPostgres, postgres_url: str) -> None:
    """Shows that it is distinguished from a server that is down."""
    name = f"clerk_{postgres_url.partition('@/home_')[2][:8]}"
    postgres.say(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 0")
    with pytest.raises(DatabaseUnavailable, match="max_connections"):
        await Database.open(postgres_url.replace("//footnote:", f"//{name}:"))
    postgres.say(f"DROP ROLE {name}")


async def test_a_read_only_server_is_reported(postgres: RealPostgres, postgres_url: str) -> None:
    """Shows that a standby in place of the primary is named."""
    database = await Database.open(postgres_url)
    await database.aclose()
    name = postgres_url.partition("@/")[2].partition("?")[0]
    postgres.say(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(DatabaseUnavailable, match="primary"):
        await keep(database, "late")
    await database.aclose()


async def test_an_idle_transaction_is_ended_by_the_server(database: Database) -> None:
    """Shows that a hung worker does not hold the lock for ever."""
    async with database.snapshot() as session:
        waits = (await session.execute(text("SHOW idle_in_transaction_session_timeout"))).scalar_one()
    assert waits == "1min"
