"""Percolate through its one door, started and asked: `pip install 'pallas-kit[local,testing]'`, then `pytest`."""

import httpx

PATIENCE = 240
"""Seconds for what takes a few on a machine that has nothing else to do."""


def call_tool(fleet, name, **arguments):
    """Return the JSON-RPC answer of the gateway to one call, as any HTTP client gets it."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    reply = httpx.post(f"{fleet.url('gateway')}/mcp", json=message, timeout=PATIENCE, trust_env=False)
    return reply.raise_for_status().json()


def result_of(answer):
    assert "result" in answer, f"the gateway answers with an error: {answer}"
    return answer["result"]["structuredContent"]


def test_the_researcher_answers_from_the_library_and_says_how_sure_it_is(fleet):
    answer = call_tool(
        fleet, "ask_agent", agent_uri="percolate-researcher", tenant_id="my-tenant", prompt="Who proved what in 1980?"
    )
    response = result_of(answer)["response"]
    assert "Harry Kesten" in response["answer"]
    assert "resource://documents/percolation.md" in response["answer"]
    assert (response["confidence"], response["tags"]) == (0.9, ["library", "research"])


def test_a_page_of_a_pdf_is_found_by_its_own_tenant_alone(fleet):
    query = "When do damaged goods have to be reported?"
    found = result_of(call_tool(fleet, "search_knowledge_base", query=query, tenant_id="test-tenant", limit=1))
    (best,) = found["results"]
    assert "within seven days" in best["content"]
    assert best["source"] == "resource://documents/agreement.pdf"
    assert best["metadata"] == {"type": "pdf", "knowledge_base": "documents", "page": 2}
    other = result_of(call_tool(fleet, "search_knowledge_base", query=query, tenant_id="my-tenant"))
    assert "seven days" not in str(other["results"])
    nobody = call_tool(fleet, "search_knowledge_base", query=query, tenant_id="library")
    assert nobody["error"]["data"] == {"reason": "unknown_tenant"}


def test_a_search_has_a_scope_and_a_limit(fleet):
    scoped = {"query": "carrier", "tenant_id": "test-tenant", "knowledge_base": "codebase"}
    found = result_of(call_tool(fleet, "search_knowledge_base", **scoped))
    assert {entry["source"] for entry in found["results"]} == {"resource://codebase/labels.md"}
    refused = call_tool(fleet, "search_knowledge_base", query="carrier", tenant_id="test-tenant", limit=21)
    assert refused["error"]["code"] == -32602
    assert refused["error"]["data"]["field"] == "limit"


def test_an_entity_is_found_by_a_part_of_its_name_with_what_it_belongs_to(fleet):
    wanted = {"entity_type": "service", "query": "express", "tenant_id": "test-tenant"}
    answer = result_of(call_tool(fleet, "lookup_entity", **wanted, include_related=True))
    assert (answer["entity"]["id"], answer["entity"]["properties"]["sla"]) == ("entity-456", "next-day")
    assert [(entry["relation"], entry["entity"]["name"]) for entry in answer["related"]] == [
        ("carried_by", "Nordic Freight"),
        ("leaves_from", "Warehouse Rotterdam"),
    ]
    missing = result_of(call_tool(fleet, "lookup_entity", **wanted | {"query": "bananas"}))
    assert missing["status"] == "error"
    assert "there is no service like `bananas`; the nearest is" in missing["message"]


RESEARCHER = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["answer", "confidence", "tags"],
}


def test_an_agent_that_a_user_makes_searches_for_its_tenant_and_answers_as_it_has_to(fleet):
    user = {"tenant_id": "test-tenant", "user_id": "user-123"}
    definition = {"description": "You read contracts.", "output_schema": RESEARCHER, "tools": ["search_knowledge_base"]}
    made = result_of(call_tool(fleet, "create_agent", **user, agent_name="contract-reader", **definition))
    assert made["agent_uri"] == "agentlet://user/user-123/contract-reader"

    def ask(prompt, **more):
        return call_tool(fleet, "ask_agent", agent_uri=made["agent_uri"], prompt=prompt, **{**user, **more})

    # the scripted model asks for my-tenant's garden: whose documents are searched is not the model's to say
    response = result_of(ask("When do damaged goods have to be reported?"))["response"]
    assert "resource://documents/agreement.pdf" in response["answer"]
    assert (response["confidence"], response["tags"]) == (0.8, ["search"])
    assert result_of(ask("hesitate"))["response"]["answer"] == "Now it fits."
    failed = result_of(ask("puzzle"))
    assert failed["status"] == "error"
    assert "gave no answer that fits its output_schema, twice: it is no JSON" in failed["response"]["answer"]
    stranger = result_of(ask("hello", tenant_id="my-tenant"))
    assert (stranger["status"], "Agent not found" in stranger["response"]["answer"]) == ("error", True)
    refused = result_of(call_tool(fleet, "create_agent", **user, agent_name="x", **definition | {"tools": ["shell"]}))
    assert "tools: there is no `shell`, only search_knowledge_base, lookup_entity" in refused["message"]


def test_a_model_that_refuses_is_an_error_of_the_agent_and_search_goes_on(fleet):
    asked = {"agent_uri": "percolate-researcher", "tenant_id": "my-tenant", "prompt": "What is percolation?"}
    fleet.faults.provider.down(status=401)
    failed = result_of(call_tool(fleet, "ask_agent", **asked))
    assert failed["status"] == "error"
    assert "the provider is down" in failed["response"]["answer"]
    found = result_of(call_tool(fleet, "search_knowledge_base", query="tomatoes", tenant_id="my-tenant"))
    assert found["results"][0]["source"] == "resource://general/garden.md"
