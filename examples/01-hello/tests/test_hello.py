"""The fleet beside this folder, started and asked: `pip install 'pallas-kit[local,testing]'`, then `pytest`."""


def test_hello_repeats_what_it_is_told(fleet):
    answer = fleet.agent("hello").ask("good morning")
    assert "good morning" in answer.text
    assert answer.progressed("hello step 1 (llm)")


def test_every_agent_is_well(fleet):
    assert fleet.health("hello").status == "ok"
    assert fleet.registry.state("hello").status == "ok"
    assert fleet.no_sessions_left()
