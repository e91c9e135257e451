"""Verdicts on calls, and where a caller is led."""

from __future__ import annotations

from typing import Any

import pytest

from pallas_contract.fleet.access_model import Gateway
from pallas_gateway.policy.policy import Policy
from pallas_service.access.caller import Caller

PHONE = Caller("phone", '["phone", null, null]', "t")
DESK = Caller("desk", '["desk", null, null]', "t")
PARENT = Caller("parent", '["parent", null, null]', "t")
JWT = Caller("phone", '["app", "https://issuer", "phone"]', "t", issuer="https://issuer")


def policy(**keys: Any) -> Policy:
    return Policy(Gateway.model_validate({"agents": ["my_scout", "other"], **keys}), ["my_scout", "other"])


def verdict(policy: Policy, caller: Caller | None, host: str, tool: str, **arguments: Any) -> str:
    decision = policy.decide(caller, host, tool, arguments)
    return decision.reason or decision.verdict


def test_without_grants_everybody_may_call_everything() -> None:
    free = policy()
    assert not free.is_guarded
    assert verdict(free, None, "my-scout", "anything at all") == "allowed"
    assert free.knows(None, "my-scout")
    assert free.may_all(PHONE, "my-scout")


GRANTS = [
    {"caller": "phone", "agent": "my_scout", "tools": ["send_message"]},
    {"caller": "phone", "service": "memory", "tools": ["notes_*", "list"]},
    {"tenant": "acme", "agent": "other", "tools": ["*"]},
    {"subject": "phone", "service": "memory", "tools": ["list"]},
]
TENANTS = {"acme": {"callers": ["desk"], "subjects": ["anna"]}}


@pytest.mark.parametrize(
    ("caller", "host", "tool", "expected"),
    [
        (PHONE, "my-scout", "send_message", "allowed"),
        (PHONE, "my-scout", "my_scout", "allowed"),  # the same tool under its other name
        (PHONE, "my-scout", "get_health", "not_granted"),
        (PHONE, "my-scout", "my-scout", "not_granted"),
        (PHONE, "my-scout", "Send_message", "not_granted"),
        (PHONE, "my-scout", "send_message ", "not_granted"),
        (PHONE, "my-scout", "s\u0435nd_message", "not_granted"),
        (PHONE, "other", "send_message", "unknown_agent"),
        (PHONE, "nobody", "send_message", "unknown_agent"),
        (PHONE, "memory", "notes_add", "allowed"),
        (PHONE, "memory", "list", "allowed"),
        (PHONE, "memory", "list_all", "not_granted"),
        (PHONE, "memory", "notes_\u0430dd", "not_granted"),  # a letter that looks like another
        (PHONE, "memory", "notes_ add", "not_granted"),
        (PHONE, "memory", "notes_" + "a" * 200, "not_granted"),
        (DESK, "other", "whatever", "allowed"),
        (DESK, "my-scout", "send_message", "unknown_agent"),
        (JWT, "memory", "list", "allowed"),
        (JWT, "memory", "notes_add", "not_granted"),  # a `sub` that is called like a static caller is not that caller
        (JWT, "my-scout", "send_message", "unknown_agent"),
        (PARENT, "my-scout", "send_message", "unknown_agent"),
        (None, "my-scout", "send_message", "unknown_agent"),
    ],
)
def test_what_is_not_granted_is_refused(caller: Caller | None, host: str, tool: str, expected: str) -> None:
    assert verdict(policy(grants=GRANTS, tenants=TENANTS), caller, host, tool) == expected


def test_lists_show_what_may_be_called() -> None:
    guarded = policy(grants=GRANTS, tenants=TENANTS)
    assert guarded.may(PHONE, "my-scout", "send_message")
    assert not guarded.may(PHONE, "my-scout", "get_health")
    assert guarded.knows(PHONE, "my-scout")
    assert not guarded.knows(PHONE, "other")
    assert guarded.may_all(DESK, "other")
    assert not guarded.may_all(PHONE, "my-scout")


def test_a_refusal_says_what_is_not_granted() -> None:
    guarded = policy(grants=GRANTS)
    refused = guarded.decide(PHONE, "memory", "wipe", {})
    assert refused.text == "`wipe` of `memory` is not granted to this caller"
    assert refused.field == "name"
    assert refused.version == guarded.version


PATHS = [
    {"caller": "phone", "service": "memory", "tools": ["read", "write"], "paths": {"path": ["tasks/home/"]}},
    {"caller": "phone", "service": "memory", "tools": ["read"], "paths": {"path": ["public/"]}},
    {"caller": "phone", "service": "memory", "tools": ["copy"], "paths": {"source": ["a/"], "target": ["b/"]}},
]


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("write", {"path": "tasks/home/a"}, "allowed"),
        ("write", {"path": "tasks/home/a", "text": "../.."}, "allowed"),
        ("write", {"path": "public/a"}, "path_not_granted"),
        ("read", {"path": "public/a"}, "allowed"),  # grants add to each other
        ("read", {"path": "tasks/work/a"}, "path_not_granted"),
        ("write", {}, "path_not_granted"),  # the tool would take a default
        ("write", {"path": None}, "path_not_granted"),
        ("write", {"path": "tasks/home/a", "Path": "/etc/passwd"}, "path_not_granted"),
        ("write", {"PATH": "tasks/home/a"}, "path_not_granted"),
        ("copy", {"source": "a/x", "target": "b/x"}, "allowed"),
        ("copy", {"source": "a/x", "target": "a/x"}, "path_not_granted"),
        ("copy", {"source": "a/x"}, "path_not_granted"),
    ],
)
def test_arguments_that_are_paths_lie_in_their_folders(tool: str, arguments: dict[str, Any], expected: str) -> None:
    assert verdict(policy(grants=PATHS), PHONE, "memory", tool, **arguments) == expected


def test_before_the_arguments_are_known_a_tool_is_granted_for_some() -> None:
    guarded = policy(grants=PATHS)
    assert guarded.decide(PHONE, "memory", "write").verdict == "allowed"
    assert guarded.decide(PHONE, "memory", "write", {}).field == "arguments.path"


CONFIRM = [
    {"service": "memory", "tools": ["delete_*", "wipe"], "by": ["parent", "phone"]},
    {"agent": "my_scout", "tools": ["send_message"], "by": ["parent"]},
]


@pytest.mark.parametrize(
    ("caller", "host", "tool", "approvers"),
    [
        (PHONE, "memory", "delete_note", {"parent"}),  # never by the caller
        (DESK, "memory", "wipe", {"parent", "phone"}),
        (DESK, "memory", "Delete_Note", {"parent", "phone"}),
        (None, "memory", "wipe", {"parent", "phone"}),
        (JWT, "memory", "wipe", {"parent", "phone"}),  # not that caller
        (PHONE, "my-scout", "my_scout", {"parent"}),  # the same tool under its other name
        (PHONE, "memory", "list", None),
        (PHONE, "other", "send_message", None),
    ],
)
def test_some_tools_are_confirmed_by_another(
    caller: Caller | None, host: str, tool: str, approvers: set[str] | None
) -> None:
    decision = policy(confirm=CONFIRM).decide(caller, host, tool, {})
    assert decision.verdict == ("allowed" if approvers is None else "confirm")
    assert decision.by == (approvers or set())


def test_a_name_that_looks_like_another_is_refused_where_some_are_confirmed() -> None:
    decision = policy(confirm=CONFIRM).decide(PHONE, "memory", "d\u0435lete_note", {})
    assert decision.reason == "not_granted"


def test_who_confirms_under_several_rules_is_in_all_of_them() -> None:
    rules = [
        {"service": "memory", "tools": ["delete_*"], "by": ["parent", "desk"]},
        {"service": "memory", "tools": ["*"], "by": ["parent"]},
    ]
    assert policy(confirm=rules).decide(PHONE, "memory", "delete_note").by == {"parent"}


def test_who_confirms_is_named_as_in_grants() -> None:
    by = ["parent", {"caller": "phone"}, {"subject": "phone"}, {"tenant": "acme"}]
    rules = policy(confirm=[{"service": "memory", "tools": ["wipe"], "by": by}], tenants=TENANTS)
    everybody = {"parent", "phone", "subject phone", "desk", "subject anna"}
    assert rules.decide(PARENT, "memory", "wipe").by == everybody - {"parent"}
    assert rules.decide(PHONE, "memory", "wipe").by == everybody - {"phone"}
    assert rules.decide(JWT, "memory", "wipe").by == everybody - {"subject phone"}  # its own calls, and no other's
    assert [rules.may_confirm(caller) for caller in (PARENT, JWT, DESK, None)] == [True, True, True, False]
    assert not rules.may_confirm(Caller("parent", "", "t", issuer="https://issuer"))


def test_what_is_not_granted_cannot_be_confirmed() -> None:
    assert verdict(policy(grants=GRANTS, confirm=CONFIRM), PHONE, "memory", "wipe") == "not_granted"


def test_a_caller_is_led_to_its_agent() -> None:
    routed = policy(
        routes=[
            {"caller": "phone", "agent": "my_scout"},
            {"tenant": "acme", "agent": "other"},
            {"caller": "desk", "agent": "my_scout"},
        ],
        tenants=TENANTS,
    )
    anna = Caller("anna", "", "t", issuer="https://issuer")
    assert routed.route(PHONE) == "my-scout"
    assert routed.route(DESK) == "my-scout"  # its own route is stronger than that of its tenant
    assert routed.route(anna) == "other"
    assert routed.route(JWT) is None
    assert routed.route(PARENT) is None
    assert routed.route(None) is None


@pytest.mark.parametrize(
    "change",
    [
        {"grants": GRANTS[:1]},
        {"confirm": CONFIRM[:1]},
        {"routes": [{"caller": "phone", "agent": "other"}]},
        {"tenants": {"acme": {"callers": ["desk", "phone"]}}},
    ],
)
def test_the_version_is_that_of_all_that_decides(change: dict[str, Any]) -> None:
    base: dict[str, Any] = {"grants": GRANTS, "confirm": CONFIRM, "tenants": TENANTS}
    assert policy(**base).version == policy(**base, port=24191, timeout=7).version
    assert policy(**base | change).version != policy(**base).version
