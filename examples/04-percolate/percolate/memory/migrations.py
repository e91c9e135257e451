"""PostgreSQL's tables, brought up to this version by whichever server starts first, with a guard on each row.

Row-level security is the second lock: all statements name the tenant, and one that forgets it sees nothing.
"""

from __future__ import annotations

from typing import Any

from percolate.problems import Problem

GUARDED = ("documents", "pieces", "entities", "relations", "agentlets")
"""Tables whose rows are somebody's. `tenants` has names alone, and a row of it is what writers of a tenant wait for."""
SETTING = "percolate.tenant"
"""Whose the transaction is; one that has not said it belongs to nobody."""
_POLICY = f"(tenant = current_setting('{SETTING}'::text, true))"
"""What PostgreSQL says of the condition below."""
_LOCK = 0x706572636F6C6174
_MIGRATIONS = (
    """
    CREATE TABLE tenants (tenant text COLLATE "C" PRIMARY KEY CHECK (tenant <> ''));
    CREATE TABLE documents (
      tenant text COLLATE "C" NOT NULL, source text COLLATE "C" NOT NULL, knowledge_base text NOT NULL,
      type text NOT NULL, digest text NOT NULL,
      PRIMARY KEY (tenant, source)
    );
    CREATE TABLE pieces (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      tenant text COLLATE "C" NOT NULL, source text COLLATE "C" NOT NULL, page integer, position integer NOT NULL,
      content text NOT NULL, words tsvector NOT NULL, model text COLLATE "C", vector vector,
      numbers integer GENERATED ALWAYS AS (vector_dims(vector)) STORED,
      UNIQUE (tenant, source, position),
      FOREIGN KEY (tenant, source) REFERENCES documents (tenant, source) ON DELETE CASCADE
    );
    CREATE TABLE entities (
      tenant text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, type text NOT NULL, name text NOT NULL,
      aliases text NOT NULL, properties text NOT NULL,
      PRIMARY KEY (tenant, id)
    );
    CREATE TABLE relations (
      tenant text COLLATE "C" NOT NULL, origin text COLLATE "C" NOT NULL, relation text COLLATE "C" NOT NULL,
      target text COLLATE "C" NOT NULL,
      PRIMARY KEY (tenant, origin, relation, target),
      FOREIGN KEY (tenant, origin) REFERENCES entities (tenant, id) ON DELETE CASCADE,
      FOREIGN KEY (tenant, target) REFERENCES entities (tenant, id) ON DELETE CASCADE
    );
    CREATE INDEX relations_by_target ON relations (tenant, target);
    CREATE TABLE agentlets (
      tenant text COLLATE "C" NOT NULL, uri text COLLATE "C" NOT NULL, version integer NOT NULL,
      description text NOT NULL, output_schema text NOT NULL, tools text NOT NULL,
      PRIMARY KEY (tenant, uri, version)
    );
    """
    + "".join(
        f"""
    ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
    ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
    CREATE POLICY of_tenant ON {table}
      USING (tenant = current_setting('{SETTING}', true)) WITH CHECK (tenant = current_setting('{SETTING}', true));
    """
        for table in GUARDED
    ),
)
"""Statements that bring the tables from each format to the next."""


async def migrate(connection: Any) -> None:
    """Make the tables, or bring them up to this version, and see that they are guarded.

    Raises:
        Problem: the role passes by row-level security, pgvector is not there, or somebody has switched the guard off.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)  # several servers start at once
        await _check_role(connection)
        await _have_vectors(connection)
        await connection.execute("CREATE TABLE IF NOT EXISTS format (version integer NOT NULL)")
        version = await connection.fetchval("SELECT max(version) FROM format") or 0
        # what a newer version has added is no hindrance: in an upgrade both are there for a while
        for number, statements in list(enumerate(_MIGRATIONS, 1))[version:]:
            await connection.execute(statements)
            await connection.execute("INSERT INTO format VALUES ($1)", number)
        await _check_guard(connection)


async def _check_role(connection: Any) -> None:
    role = await connection.fetchrow(
        "SELECT rolname, rolsuper OR rolbypassrls AS passes FROM pg_roles WHERE rolname = current_user"
    )
    if role["passes"]:
        raise Problem(
            f"PERCOLATE_DATABASE: the role `{role['rolname']}` sees the rows of every tenant: name one that is neither "
            "SUPERUSER nor BYPASSRLS (README.md, PostgreSQL)"
        )
    if (encoding := await connection.fetchval("SHOW server_encoding")) != "UTF8":
        raise Problem(f"PERCOLATE_DATABASE: the database is in {encoding}: make one with ENCODING 'UTF8'")


async def _have_vectors(connection: Any) -> None:
    import asyncpg  # noqa: PLC0415 - where PostgreSQL is used

    if await connection.fetchval("SELECT 1 FROM pg_extension WHERE extname = 'vector'"):
        return
    try:
        await connection.execute("CREATE EXTENSION vector")
    except asyncpg.InsufficientPrivilegeError:
        raise Problem(
            "PERCOLATE_DATABASE: have a superuser run `CREATE EXTENSION vector` in the database: its role may not"
        ) from None
    except asyncpg.PostgresError:
        raise Problem("PERCOLATE_DATABASE: the server has no pgvector: install it, then start again") from None


async def _check_guard(connection: Any) -> None:
    statement = (
        "SELECT relname FROM pg_class WHERE oid = ANY($1::regclass[]) AND NOT (relrowsecurity AND relforcerowsecurity)"
    )
    if open_tables := await connection.fetch(f"{statement} ORDER BY 1", list(GUARDED)):
        names = ", ".join(row["relname"] for row in open_tables)
        raise Problem(
            f"PERCOLATE_DATABASE: row-level security is off for {names}: `ALTER TABLE ... FORCE ROW LEVEL SECURITY` "
            "and `ENABLE`, or the memory serves nobody"
        )
    # permissive ones open what any of them opens; others only narrow it
    statement = (
        "SELECT relname FROM pg_class c LEFT JOIN pg_policy p ON polrelid = c.oid AND polpermissive "
        "WHERE c.oid = ANY($1::regclass[]) GROUP BY 1 HAVING NOT bool_and(coalesce(pg_get_expr(polqual, c.oid) = $2 "
        "AND coalesce(pg_get_expr(polwithcheck, c.oid), $2) = $2, false))"
    )
    if opened := await connection.fetch(f"{statement} ORDER BY 1", list(GUARDED), _POLICY):
        names = ", ".join(row["relname"] for row in opened)
        raise Problem(
            f"PERCOLATE_DATABASE: the policies of {names} let through more, or less, than a tenant's own rows: `DROP "
            f"POLICY` all but of_tenant, and `ALTER POLICY of_tenant ON ... USING {_POLICY} WITH CHECK {_POLICY}`, or "
            "the memory serves nobody"
        )
