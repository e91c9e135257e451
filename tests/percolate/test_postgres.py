"""PostgreSQL under examples/04-percolate: tenants kept apart by the database, several servers, and what breaks."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from percolate.agentlets import keeping
from percolate.agentlets.definition import Definition
from percolate.ingest.folder import ingest
from percolate.mcp.tools.agent import ANSWER
from percolate.memory import entities
from percolate.memory.databases import open_store
from percolate.memory.embeddings import StandIn
from percolate.memory.entities import Entity
from percolate.memory.migrations import GUARDED
from percolate.memory.postgres import PostgresStore
from percolate.memory.search import Hit, search
from percolate.memory.store import Store
from percolate.problems import Away, Problem

from tests.gateway.state.stores import Server, postgres
from tests.installed import ROOT
from tests.ports import free_port

from .conftest import TABLES, NewDatabase, address, as_superuser

pytestmark = pytest.mark.sqlite

EXAMPLE = ROOT / "examples" / "04-percolate"
LIMIT = 120.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return acme(tmp_path)


def acme(path: Path) -> Path:
    """The folder of a tenant with a document and an entity."""
    folder = path / "documents" / "acme"
    (folder / "general").mkdir(parents=True)
    (folder / "general" / "secret.md").write_text("Otters hold hands while they sleep.")
    (folder / "entities.yaml").write_text(
        "entities: [{id: a, type: t, name: A, related: [{relation: r, to: b}]}, {id: b, type: t, name: B}]"
    )
    return folder


@pytest.fixture
def url(new_database: NewDatabase) -> str:
    """The address of a memory with nothing in it."""
    return new_database("postgresql", TABLES)


@pytest.fixture(scope="module")
def filled(new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database in which `acme` has something in every table, and `other` a document."""
    url, folder = new_database("postgresql", TABLES), acme(tmp_path_factory.mktemp("filled"))
    store = open_store(url)
    assert ingest(store, StandIn(), folder, "acme").problems == []
    made(store, "acme")
    (folder / "entities.yaml").unlink()
    (folder / "general" / "secret.md").write_text("Badgers dig.")
    assert ingest(store, StandIn(), folder, "other").problems == []
    store.close()
    return url.rpartition("/")[2]


@pytest.fixture
def store(new_database: NewDatabase, filled: str) -> Iterator[Store]:
    """A memory of the test's own, with what is in `filled`."""
    store = open_store(new_database("postgresql", filled))
    yield store
    store.close()


def made(store: Store, tenant: str) -> Definition:
    return keeping.create(
        store, tenant, user="alice", name="reader", description="You read.", output_schema=ANSWER, tools=[]
    )


def found(store: Store, query: str, tenant: str = "acme", scope: str | None = None) -> list[Hit]:
    return search(store, StandIn(), tenant=tenant, query=query, knowledge_base=scope, limit=100).hits


@pytest.mark.parametrize("table", GUARDED)
def test_a_statement_that_forgets_the_tenant_sees_nothing_of_others(store: Store, table: str) -> None:
    counted = f"SELECT count(*), count(*) FILTER (WHERE tenant = 'acme') FROM {table}"
    ((everything, own),) = store.rows("acme", counted)
    assert everything == own > 0
    ((_, others),) = store.rows("other", counted)
    assert others == 0
    assert store.rows("", counted) == [(0, 0)], "who has not said whose the transaction is sees nothing at all"


@pytest.mark.parametrize(
    "name",
    [
        "x' OR 'a' = 'a",
        "x' UNION ALL SELECT content FROM pieces --",
        "x' OR tenant = 'acme' --",
    ],
)
def test_sql_that_is_put_together_wrongly_shows_nothing_of_others(store: Store, name: str) -> None:
    assert found(store, "otters hold hands", "other") == []
    rows = store.rows("other", f"SELECT content FROM pieces WHERE source = '{name}'")
    assert set(rows) <= {("Badgers dig.",)}


def test_one_statement_is_one_statement(store: Store) -> None:
    name = "x'; SET LOCAL percolate.tenant = 'acme'; SELECT content FROM pieces --"
    with pytest.raises(Problem, match="the memory's database refuses"):
        store.rows("other", f"SELECT content FROM pieces WHERE source = '{name}' AND tenant = :tenant")


def test_what_is_refused_quotes_no_row_wherever_it_is_shown(store: Store) -> None:
    """PostgreSQL itself says `Key (tenant)=(acme) already exists.`; of guarded tables it says less."""
    with pytest.raises(Problem, match=r"refuses \(UniqueViolationError\)") as caught, store.transaction("acme"):
        store.write("INSERT INTO tenants VALUES (:tenant)", [{}])
    assert "(acme)" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO documents VALUES ('acme', 'resource://general/x.md', 'general', 'text', 'd')",
        "UPDATE documents SET tenant = 'acme'",
        "ALTER ROLE percolate BYPASSRLS",
    ],
)
def test_nobody_writes_for_another_tenant_nor_becomes_more(store: Store, statement: str) -> None:
    with pytest.raises(Problem, match="InsufficientPrivilegeError"), store.transaction("other"):
        store.write(statement, [{}])
    assert [hit.content for hit in found(store, "badgers", "other")] == ["Badgers dig."]
    with store.transaction("other"):
        store.write("DELETE FROM documents", [{}])
    assert found(store, "badgers", "other") == []
    assert [hit.content for hit in found(store, "otters")] == ["Otters hold hands while they sleep."]


def test_a_transaction_is_one_tenants(store: Store) -> None:
    with pytest.raises(ValueError, match="a transaction is one tenant's"), store.transaction("acme"):
        store.rows("other", "SELECT 1")


def test_a_database_that_tenants_cannot_share_is_refused(postgresql: Server, new_database: NewDatabase) -> None:
    url = new_database("postgresql")
    database = url.rpartition("/")[2]
    with pytest.raises(Problem, match="the role `postgres` sees the rows of every tenant: name one that is neither"):
        open_store(address(postgresql, database, "postgres"))
    as_superuser(postgresql, database, "DROP EXTENSION vector")
    with pytest.raises(Problem, match="have a superuser run `CREATE EXTENSION vector` in the database"):
        open_store(url)
    as_superuser(postgresql, database, "CREATE EXTENSION vector")
    open_store(url).close()
    as_superuser(postgresql, database, "ALTER TABLE pieces DISABLE ROW LEVEL SECURITY")
    with pytest.raises(Problem, match="row-level security is off for pieces: "):
        open_store(url)
    with pytest.raises(Problem, match="lets nobody in"):
        open_store(address(postgresql, "absent"))


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE POLICY all_of ON pieces USING (true)",
        "CREATE POLICY mine ON pieces FOR SELECT USING (tenant = 'acme')",
        "CREATE POLICY writers ON pieces FOR INSERT WITH CHECK (true)",
        "ALTER POLICY of_tenant ON pieces USING (true)",
        "ALTER POLICY of_tenant ON pieces WITH CHECK (true)",
        "DROP POLICY of_tenant ON pieces",
    ],
)
def test_a_policy_that_opens_more_is_refused_and_taken_back_as_it_says(
    postgresql: Server, url: str, statement: str
) -> None:
    database = url.rpartition("/")[2]
    open_store(url).close()
    as_superuser(postgresql, database, statement)
    with pytest.raises(Problem, match="the policies of pieces let through more") as caught:
        open_store(url)
    if statement.startswith("ALTER"):
        (remedy,) = re.findall(r"`(ALTER POLICY .*?)`", str(caught.value))
        as_superuser(postgresql, database, remedy.replace("...", "pieces"))
        open_store(url).close()


def test_a_policy_that_narrows_is_nobodys_business(postgresql: Server, url: str) -> None:
    open_store(url).close()
    narrowing = "CREATE POLICY less ON pieces AS RESTRICTIVE USING (position < 10)"
    as_superuser(postgresql, url.rpartition("/")[2], narrowing)
    open_store(url).close()


def test_a_server_that_is_lost_in_a_transaction_holds_up_nobody_for_long(url: str) -> None:
    """Alive, and so its connection is, and says no more."""
    lost, other = PostgresStore(url, idle=1), open_store(url)
    try:
        transaction = ExitStack()
        # a machine with much to do may lose it while it begins
        until(lambda: transaction.enter_context(lost.transaction("acme")))
        assert until(lambda: made(other, "acme")).version == 1
        with pytest.raises(Away, match="what it has is not lost, try again"):
            transaction.close()
    finally:
        lost.close()
        other.close()


@pytest.mark.parametrize("wrong", ["postgresql://[", "postgresql://host:port/x", "postgresql://h/x?sslmode=maybe"])
def test_what_is_no_address_is_named_without_its_password(wrong: str) -> None:
    with pytest.raises(Problem, match="PERCOLATE_DATABASE is no address: postgresql://USER:PASSWORD@HOST"):
        open_store(wrong)


def test_servers_beside_one_another_have_one_memory(url: str, folder: Path) -> None:
    with ThreadPoolExecutor(3) as threads:
        stores = list(threads.map(open_store, 3 * [url]))
        try:
            for n in range(8):
                (folder / "general" / f"{n}.md").write_text(f"Document {n} is about badgers.")
            reports = list(threads.map(lambda store: ingest(store, StandIn(), folder, "acme"), stores))
            assert [report.problems for report in reports] == 3 * [[]]
            sources = [{hit.source for hit in found(store, "badgers")} for store in stores]
            assert sources == 3 * [{f"resource://general/{n}.md" for n in range(8)}]
            versions = sorted(threads.map(lambda n: made(stores[n % 3], "acme").version, range(9)))
            assert versions == list(range(1, 10)), "none is given twice"
            assert [definition.version for definition in keeping.latest(stores[0], "acme")] == [9]
        finally:
            for store in stores:
                store.close()


QUERIES = ("Lina asked for pallets", "CarrierTimeout", "expres shiping", "damaged goods", "the and of a", "café ???")


def test_both_databases_find_the_same_with_the_same_scores(new_database: NewDatabase, tmp_path: Path) -> None:
    more = tmp_path / "more" / "general"
    more.mkdir(parents=True)
    for n in range(30):
        (more / f"{n}.md").write_text(f"Straße {n}: the Café's 1e5 parcels, foo_bar, {n % 7} carriers.\n\n 東京都 {n}")
    stores = [open_store(new_database(kind)) for kind in ("sqlite", "postgresql")]
    try:
        for store in stores:
            for tenant, documents in (("acme", EXAMPLE / "documents" / "test-tenant"), ("other", more.parent)):
                assert ingest(store, StandIn(), documents, tenant).problems == []
        for tenant in ("acme", "other"):
            for query in (*QUERIES, "STRASSE cafe", "foo_bar 1e5", "東京都", "carrier's parcel"):
                for scope in (None, "general", "codebase"):
                    one, other = (found(store, query, tenant, scope) for store in stores)
                    assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], abs=2e-4)
                    assert sorted(map(place, one)) == sorted(map(place, other)), query
        graphs = [entities.related(store, "acme", "nordic-freight") for store in stores]
        assert graphs[0] == graphs[1] != []
    finally:
        for store in stores:
            store.close()


def place(hit: Hit) -> tuple[str, str, int, str]:
    return hit.source, hit.content, hit.page or 0, hit.knowledge_base


def test_a_text_that_postgresql_cannot_hold_is_a_problem_of_its_own(store: Store) -> None:
    with pytest.raises(Problem, match="cannot hold such a text"):
        entities.replace(store, "acme", [Entity("z", "t", "a\0b")])
    assert entities.lookup(store, "acme", "t", "A").id == "a"


def until[T](work: Callable[[], T]) -> T:
    """Return what `work` gives once the database answers."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            return work()
        except Away:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_a_database_that_goes_and_comes_is_said_waited_for_and_nothing_is_lost(folder: Path) -> None:
    with postgres() as server:
        as_superuser(server, "postgres", "CREATE ROLE percolate LOGIN", "CREATE DATABASE memory OWNER percolate")
        as_superuser(server, "memory", "CREATE EXTENSION vector")
        store = open_store(address(server, "memory"))
        try:
            assert ingest(store, StandIn(), folder, "acme").read == 1
            (folder / "general" / "new.md").write_text("Badgers dig.")
            server.stop()
            gone = f"database 127.0.0.1:{server.port} gives no answer .*: what it has is not lost, try again"
            with pytest.raises(Away, match=gone):
                found(store, "otters")
            with pytest.raises(Away, match=gone):
                ingest(store, StandIn(), folder, "acme")
            with pytest.raises(Away, match=gone):
                open_store(address(server, "memory"))
            with ThreadPoolExecutor(1) as thread:
                opening = thread.submit(open_store, address(server, "memory"), patience=LIMIT)
                server.start()
                opening.result(LIMIT).close()
            assert until(lambda: found(store, "otters"))[0].content == "Otters hold hands while they sleep."
            assert until(lambda: ingest(store, StandIn(), folder, "acme")).read == 1
            assert made(store, "acme").version == 1
        finally:
            store.close()


def test_a_full_disk_of_the_database_is_named_and_the_rest_goes_on(folder: Path) -> None:
    with postgres() as server:
        as_superuser(server, "postgres", "CREATE ROLE percolate LOGIN", "CREATE DATABASE memory OWNER percolate")
        as_superuser(server, "memory", "CREATE EXTENSION vector")
        open_store(address(server, "memory")).close()
        filler = (
            "INSERT INTO documents VALUES ('filler', 's', 'general', 'text', 'd')",
            "INSERT INTO pieces (tenant, source, position, content, words) "
            "SELECT 'filler', 's', n, repeat(md5(n::text), 50), '' FROM generate_series(1, 7900) n",
        )
        as_superuser(server, "memory", *filler, "CHECKPOINT")
        server.stop()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:  # nothing may become larger than a segment of the log, and the table is nearly
            resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 20, hard))
            server.start()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        store = open_store(address(server, "memory"))
        try:
            (folder / "general" / "long.md").write_text("Badgers dig. " * 80_000)
            # whether it is the text of the long one that does not fit or its vectors depends on how pages are filled
            problems = ingest(store, StandIn(), folder, "acme").problems
            assert "does not fit: the disk of the memory's database is full" in problems[0]
            assert "Otters hold hands while they sleep." in {hit.content for hit in found(store, "otters")}
            as_superuser(server, "memory", "TRUNCATE documents CASCADE")
            assert ingest(store, StandIn(), folder, "acme").problems == []
            assert found(store, "otters")[0].content == "Otters hold hands while they sleep."
        finally:
            store.close()


def test_the_command_says_in_one_line_that_its_database_is_away(tmp_path: Path) -> None:
    (tmp_path / "documents" / "acme").mkdir(parents=True)
    port = free_port()
    secret = f"postgresql://percolate:hunter2@127.0.0.1:{port}/memory"
    done = subprocess.run(
        [sys.executable, "-m", "percolate.ingest"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(EXAMPLE), "PERCOLATE_DATABASE": secret},
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"the memory's database 127.0.0.1:{port} gives no answer (ConnectionRefusedError)")
    assert (done.stderr.count("\n"), "hunter2" in done.stderr) == (1, False)
