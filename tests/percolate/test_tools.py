"""The tools of examples/04-percolate as functions: results, scopes, limits, tenants."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from mcp import Client
from percolate.ingest.folder import ingest
from percolate.mcp.server import server
from percolate.mcp.tools import Tools, use
from percolate.mcp.tools.entity import lookup_entity
from percolate.mcp.tools.search import library_search, search_knowledge_base
from percolate.memory.databases import open_store
from percolate.memory.embeddings import StandIn
from percolate.memory.pieces import LONGEST, Document, pieces
from percolate.memory.store import Store
from percolate.problems import NotThere

from tests.installed import ROOT

from .conftest import DATABASES, NewDatabase

pytestmark = pytest.mark.sqlite

DOCUMENTS = ROOT / "examples" / "04-percolate" / "documents"
TENANT = "test-tenant"


@pytest.fixture(scope="module", params=DATABASES, autouse=True)
def memory(new_database: NewDatabase, request: pytest.FixtureRequest) -> Iterator[Store]:
    """The documents of the example, which no test here changes."""
    store = open_store(new_database(request.param))
    use(Tools(store))
    for folder in DOCUMENTS.iterdir():
        assert ingest(store, StandIn(), folder, folder.name).problems == []
    yield store
    store.close()


@pytest.mark.parametrize(
    ("query", "source"),
    [
        ("Lina asked for pallets", "resource://documents/notes.txt"),
        ("CarrierTimeout", "resource://codebase/labels.md"),
        ("expres shiping", "resource://general/shipping.md"),  # no word of it is there
        ('"; DROP TABLE pieces; -- NEAR( * parcel', "resource://documents/agreement.pdf"),
    ],
)
async def test_the_best_result_is_the_one_that_is_meant(query: str, source: str) -> None:
    answer = await search_knowledge_base(query=query, tenant_id=TENANT)
    scores = [result["score"] for result in answer["results"]]
    assert answer["results"][0]["source"] == source
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert answer["count"] == len(scores)


async def test_a_tenant_finds_what_is_its_own(memory: Store) -> None:
    for tenant, sources in (("my-tenant", {"resource://general/garden.md"}), ("nobody", set())):
        answer = await search_knowledge_base(query="the and of a", tenant_id=tenant, limit=20)
        assert {result["source"] for result in answer["results"]} == sources
    with pytest.raises(NotThere, match="there are no entities"):
        await lookup_entity(entity_type="service", query="Express Shipping", tenant_id="my-tenant")


async def test_an_agent_finds_what_is_in_the_library() -> None:
    search = library_search("library")
    assert "(resource://documents/percolation.md)" in await search(query="percolation", limit=1)
    assert await search(query="CarrierTimeout") == "Nothing in the library is about that."


async def test_a_server_checks_limits_and_tells_problems_as_tool_errors() -> None:
    async with Client(server([search_knowledge_base, lookup_entity])) as client:

        async def call(name: str, **arguments: object) -> tuple[bool, str]:
            result = await client.call_tool(name, {"tenant_id": TENANT, **arguments})
            return bool(result.is_error), result.content[0].text

        failed, text = await call("search_knowledge_base", query="parcel")
        assert (failed, json.loads(text)["status"]) == (False, "success")
        for wrong in ({"limit": 21}, {"limit": 0}, {"knowledge_base": "attic"}, {"query": ""}):
            assert (await call("search_knowledge_base", **{"query": "parcel", **wrong}))[0], wrong
        failed, text = await call("lookup_entity", entity_type="planet", query="Mars")
        assert failed
        assert text.endswith("there is no entity of type `planet`: there are carrier, person, place, service")


@pytest.mark.parametrize("query", ["entity-456", "NEXT-DAY DELIVERY", "the express shipping service", "expres shiping"])
async def test_an_entity_is_known_by_id_alias_or_a_name_like_it(query: str) -> None:
    answer = await lookup_entity(entity_type="Service", query=query, tenant_id=TENANT)
    assert answer["entity"]["name"] == "Express Shipping"
    assert "related" not in answer


async def test_relations_are_told_from_both_ends() -> None:
    answer = await lookup_entity(entity_type="carrier", query="NF", tenant_id=TENANT, include_related=True)
    related = [(entry["direction"], entry["relation"], entry["entity"]["id"]) for entry in answer["related"]]
    assert related == [
        ("out", "contact", "lina"),
        ("in", "carried_by", "economy"),
        ("in", "carried_by", "entity-456"),
    ]


def test_a_piece_is_never_longer_than_it_may_be_and_no_letter_is_lost() -> None:
    text = "Short.\n\n" + "word " * 400 + "\n\n" + "x" * 2000
    made = pieces(Document("s", "general", "text", "d", [(1, text), (2, "")]))
    assert max(len(piece.content) for piece in made) <= LONGEST
    assert "".join("".join(piece.content.split()) for piece in made) == "".join(text.split())
    assert [piece.position for piece in made] == list(range(len(made)))
