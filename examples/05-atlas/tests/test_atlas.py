"""Atlas through its one door, started and asked: `pip install 'pallas-kit[local,testing]'`, then `pytest`."""

import httpx

PATIENCE = 240
"""Seconds for what takes a few on a machine that has nothing else to do."""
TENANTS = {"phone": "home", "parent": "home", "desk": "office"}


def request(fleet, caller, path, message=None):
    """Return the JSON that the gateway answers a caller with."""
    token = (fleet.folder / "secrets" / f"{caller}.txt").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    method = "GET" if message is None else "POST"
    url = f"{fleet.url('gateway')}{path}"
    reply = httpx.request(method, url, json=message, headers=headers, timeout=PATIENCE, trust_env=False)
    return reply.raise_for_status().json()


def ask(fleet, caller, prompt):
    """Return what the agent of a caller answers: it names none, and is led to its own."""
    arguments = {"tenant_id": TENANTS[caller], "prompt": prompt}
    params = {"name": "ask_agent", "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = request(fleet, caller, "/mcp", message)
    assert "result" in answer, f"the gateway answers with an error: {answer}"
    return answer["result"]["structuredContent"]["response"]["answer"]


def test_who_calls_decides_who_answers(fleet):
    answer = ask(fleet, "phone", "How is the weather?")
    assert "The weather in San Francisco, United States is 72°F and clear, wind 6 mp/h." in answer
    assert "Tuesday 2026-11-24 02:30 JST" in ask(fleet, "desk", "When is half past six in Tokyo?")
    assert "echo: are you there?" in ask(fleet, "desk", "echo: are you there?")


def test_a_model_reads_what_went_wrong_and_tries_again(fleet):
    answer = ask(fleet, "phone", "How is the weather at the lake?")
    assert "there is no place `The Lake`" in answer
    assert "The weather in Oslo, Norway is -4°C and snowing" in answer


def test_tasks_are_markdown_files_and_deleting_one_wants_a_parent(fleet):
    assert "Task buy-milk is on the board" in ask(fleet, "phone", "We must buy milk")
    assert '"column":"todo","id":"buy-milk","priority":"high"' in ask(fleet, "phone", "What is on the board?")
    assert "Buy milk is in done." in ask(fleet, "phone", "The milk is bought")
    assert "another caller must confirm this call" in ask(fleet, "phone", "Please delete the milk")
    (waiting,) = request(fleet, "parent", "/confirmations")["confirmations"]
    assert (waiting["tool"], waiting["arguments"]) == ("delete_task", {"task": "buy-milk"})
    request(fleet, "parent", f"/confirmations/{waiting['id']}", {"decision": "approve"})
    assert "buy-milk is deleted." in ask(fleet, "phone", "Please delete the milk")
    assert "buy-milk" not in ask(fleet, "phone", "What is on the board?")


def test_each_agent_has_its_own_folder(fleet):
    assert "work-agent-config/notes/plan.md is written." in ask(fleet, "desk", "Make a note of the plan")
    refused = ask(fleet, "phone", "Read me the notes of work")
    assert "Ship on Friday" not in refused
    assert "path" in refused


def test_a_timer_fires_though_the_tools_were_ended_meanwhile(fleet):
    assert "Timer 1 (tea) fires on" in ask(fleet, "phone", "Set a timer for the tea")
    fleet.faults.restart("home_tools")
    # a question before they are up again is answered too: that they are not
    fleet.wait_for(lambda: "Timer 1 (tea) fired on" in ask(fleet, "phone", "Wait for the tea"), within=PATIENCE)

    def there():
        return ask(fleet, "phone", "Which timers are there?").count('"label":"tea"')

    fleet.wait_for(lambda: there() == 1, within=PATIENCE)
