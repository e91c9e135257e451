"""What is to be proved, row by row: what is expected, the tests that are its short form, and its long one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the page. `short` are tests, as pytest names them; `long` is the step that measures it.

    Of most faults it is those tests themselves, which measure with the registry's own interval.
    """

    number: str
    what: str
    expected: str
    short: tuple[str, ...]
    long: str = "tests"


_FAULTS = "tests/registry/faults/"
_TABLE = f"{_FAULTS}test_faults.py::test_each_fault_is_published_as_what_it_is_and_in_time"
_BACK = f"{_FAULTS}test_faults.py::test_each_is_ok_again_within_an_interval"


def _rows(*numbers: int) -> tuple[str, ...]:
    """Return the tests of rows of the table of faults, which are parametrised by number and name."""
    return tuple(f"{test}[{number}-" for number in numbers for test in (_TABLE, _BACK))


FAULTS = (
    Row("1", "kill -9 of an agent", "`error` in 6 s, `ok` an interval after it runs again", _rows(1), "faults"),
    Row(
        "2",
        "SIGSTOP of an agent, a container that is paused",
        "`error` in 11 s; nobody else is asked later; SIGCONT heals",
        (*_rows(2), f"{_FAULTS}test_faults.py::test_2_who_hangs_delays_no_other"),
        "faults",
    ),
    Row(
        "3",
        "container removed, its name gone",
        "stays listed, `error`: name not found",
        (
            f"{_FAULTS}test_dns.py::test_3_a_removed_container_stays_listed",
            "tests/testing/targets/test_compose.py::test_a_fleet_is_tested_disturbed_and_gone_when_its_test_is_killed",
        ),
        "faults",
    ),
    Row(
        "4",
        "container recreated with a new address",
        "asked there within an interval, never again at the old one",
        (f"{_FAULTS}test_dns.py::test_4_a_recreated_container_is_found_at_its_new_address",),
        "faults",
    ),
    Row(
        "5",
        "DNS down for 30 s",
        "last known addresses and states, marked as old; nobody turns red",
        (f"{_FAULTS}test_dns.py::test_5_dns_that_is_down_turns_nobody_red",),
    ),
    Row(
        "6",
        "DNS gives another service's address",
        "`degraded`: answers as ...",
        (f"{_FAULTS}test_dns.py::test_6_the_address_of_another_service_is_not_ok",),
    ),
    Row(
        "7",
        "latency of 2.9 s, 3.1 s; of 2 s with a lost probe",
        "`ok`; `error`; nothing",
        (*_rows(7), f"{_FAULTS}test_faults.py::test_7_a_lost_probe_of_an_agent_that_is_always_slow_flips_nothing"),
    ),
    Row(
        "8",
        "silence after connect, half-open",
        "`error` in 11 s; no connection is left behind",
        (*_rows(8), f"{_FAULTS}test_faults.py::test_8_no_connection_is_left_behind"),
    ),
    Row("9", "reset in mid body, cut, a byte per packet", "`error`; `error`; `ok`", _rows(9)),
    Row("10", "a byte per second for ever", "`error` in 11 s: one deadline for the whole probe", _rows(10)),
    Row(
        "11",
        "100 MB, endless events, endless trailers",
        "`error`, cut at 64 KiB; memory grows by less than 1 MiB",
        (*_rows(11), f"{_FAULTS}test_load.py::test_11_and_12_answers_of_any_size_take_no_memory"),
    ),
    Row("12", "gzip bomb", "`error`: refused unread", _rows(12)),
    Row("13", "invalid JSON, wrong id, wrong version, HTML", "`error`; the version `degraded`", _rows(13)),
    Row(
        "14",
        "redirect to a metadata address, to another agent",
        "`error`, logged, followed nowhere",
        (*_rows(14), f"{_FAULTS}test_faults.py::test_14_a_redirect_is_followed_nowhere_and_logged"),
    ),
    Row(
        "15",
        "401; 429 and 503 with Retry-After",
        "`unauthenticated`; `degraded`, asked again when it said",
        (*_rows(15), f"{_FAULTS}test_faults.py::test_15_retry_after_is_heeded_within_an_interval"),
    ),
    Row(
        "16",
        "flapping every second, for two minutes",
        "one change per interval at most",
        (
            f"{_FAULTS}test_faults.py::test_16_flapping_is_published_once_per_interval_at_most",
            f"{_FAULTS}test_clock.py::test_16_two_minutes_of_flapping_publish_one_change_per_interval_at_most",
        ),
    ),
    Row(
        "17",
        "all agents die at once",
        "each `error`, published once; processor time at most doubled",
        (f"{_FAULTS}test_load.py::test_17_all_agents_die_at_once",),
        "faults",
    ),
    Row(
        "18",
        "registry killed in the middle of a reload",
        "the same bytes within 2 s of the next start; no torn file",
        (f"{_FAULTS}test_file.py::test_18_a_registry_killed_in_the_middle_of_a_reload_says_the_same_again",),
    ),
    Row(
        "19",
        "agents.yaml replaced by a broken one",
        "old catalogue, `config_ok 0`; the mended file is picked up",
        (f"{_FAULTS}test_file.py::test_19_a_broken_file_keeps_the_old_catalogue",),
    ),
    Row(
        "20",
        "agent added, renamed, removed",
        "the next request has it; the ETag changes once",
        (f"{_FAULTS}test_file.py::test_20_each_change_of_the_file_changes_the_etag_once",),
    ),
    Row(
        "21",
        "64 file descriptors; a full disk",
        "all agents stay `ok`; the store says so and goes on",
        (
            f"{_FAULTS}test_load.py::test_21_few_file_descriptors_are_no_fault_of_the_agents",
            "tests/registry/registration/test_store.py::test_a_full_disk_is_an_error_of_the_store",
            "tests/agent_runtime/conversations/test_sqlite.py::test_a_full_disk_has_room_again_once_something_is_forgotten",
        ),
    ),
    Row(
        "22",
        "wall clock jumps by an hour",
        "no burst, no gap",
        (f"{_FAULTS}test_clock.py::test_22_a_wall_clock_that_jumps_moves_no_probe",),
    ),
    Row(
        "23",
        "SIGTERM with calls and streams open",
        "each call is answered or ended by an error; exit 0",
        (
            "tests/agent_runtime/test_load.py::test_what_is_under_way_at_the_end_is_answered_or_failed",
            "tests/agent_runtime/pair/test_stopping.py::test_sigterm_ends_the_streams_of_idle_sessions",
        ),
    ),
    Row(
        "24",
        "model provider down, wrong key, slow",
        "the agent starts, `degraded` names the provider; a hang ends after 5 s",
        (
            "tests/agent_runtime/faults/test_provider_down.py::test_a_provider_that_was_down_at_the_start_is_noticed",
            "tests/agent_runtime/faults/test_provider_down.py::"
            "test_only_the_active_provider_degrades_and_a_hang_ends_after_five_seconds",
        ),
    ),
)
LOAD = (
    Row(
        "a",
        "200 agents, asked every 5 s, for 10 minutes",
        "no round missed; memory and descriptors flat",
        ("tests/proof/test_load.py::test_clients_and_hundreds_of_agents",),
        "hundreds",
    ),
    Row(
        "b",
        "16 clients on the catalogue at half of their peak, for 5 minutes, while 100 agents are asked",
        "every answer is 200; p99 at most twice that of a quiet registry",
        ("tests/proof/test_load.py::test_clients_and_hundreds_of_agents",),
        "clients",
    ),
    Row(
        "c",
        "1,000 turns through three levels of agents",
        "all answered; no session and no call left",
        ("tests/e2e/test_local.py::test_harper_delegates_and_quotes_what_its_colleagues_found",),
        "turns",
    ),
    Row(
        "d",
        "1,000 probes of one agent",
        "less than 2 kB each, nothing left behind",
        ("tests/agent_runtime/test_probed.py::test_a_thousand_probes_leave_nothing_behind",),
    ),
)
INPUTS = (
    Row(
        "fleets",
        "random agents.yaml, configurations, secrets and cards",
        "no traceback; each refusal names file, line and key",
        (
            "tests/generator/test_any_project.py::test_any_fleet",
            "tests/generator/test_any_project.py::test_any_configuration",
        ),
        "fuzz",
    ),
    Row(
        "requests",
        "random JSON-RPC, headers, bodies and raw bytes to an agent",
        "an answer or an error, never a crash; memory returns",
        (
            "tests/agent_runtime/test_bad_input.py::test_any_request",
            "tests/agent_runtime/test_bad_input.py::test_any_body",
            "tests/agent_runtime/test_bad_input.py::test_any_bytes",
            "tests/agent_runtime/test_bad_input.py::test_nothing_of_it_was_a_crash",
            "tests/agent_runtime/test_bad_input.py::test_memory_returns_to_where_it_was",
        ),
        "fuzz",
    ),
    Row(
        "documents",
        "random requests to the registry, by its own OpenAPI description",
        "every answer is one that it describes",
        ("tests/registry/http/test_any_request.py::test_any_request",),
        "fuzz",
    ),
)
OTHERS = (
    Row(
        "changes",
        "10,000 changes of state",
        "each in log, counters, stream and page; none invented, none out of order",
        (
            "tests/registry/state/test_agents.py::test_10000_injected_changes_are_heard_complete_and_in_order",
            "tests/registry/http/test_faces.py::test_10000_changes_reach_log_counters_stream_and_page_alike",
        ),
    ),
    Row(
        "canaries",
        "secrets planted in files, variables, indexes and images",
        "0 in what is generated, inspected, logged, served, or in a layer",
        (
            "tests/generator/test_canaries.py::test_what_is_referred_to_is_in_nothing_that_is_generated",
            "tests/e2e/test_stranger.py::test_in_containers",
            "tests/e2e/test_baked.py::test_no_secret_of_who_builds_is_in_a_layer_or_in_what_is_printed",
        ),
    ),
    Row(
        "conformance",
        "the official MCP suite, both eras, against agents and registry in containers",
        "what it finds is decided, with reasons, and nothing else",
        ("tests/e2e/test_conformance.py::test_the_suite_finds_what_is_decided_and_nothing_else",),
    ),
    Row(
        "policies",
        "kube-score, checkov and Pod Security on five topologies; every connection by two evaluators",
        "nothing that is not waived with a reason",
        (
            "tests/chart/test_policy.py::test_nothing_is_found_but_what_was_waived",
            "tests/chart/test_cyclonus.py::test_it_finds_every_connection_as_promised",
        ),
    ),
)
SECTIONS = {
    "Faults survived": FAULTS,
    "Load held": LOAD,
    "Bad inputs tried": INPUTS,
    "Nothing lost, nothing told, nothing loose": OTHERS,
}
