"""Each module has its tests where a reader looks for them, or stands here with where they are and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LONGEST

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "cli": ROOT / "cli" / "pallas_cli",
    "contract": ROOT / "contract" / "pallas_contract",
    "service": ROOT / "services" / "common" / "pallas_service",
    "gateway": ROOT / "services" / "gateway" / "pallas_gateway",
    "registry": ROOT / "services" / "registry" / "pallas_registry",
    "agent_runtime": ROOT / "services" / "agent-runtime" / "pallas_agent_runtime",
    "generator": ROOT / "generator" / "pallas_gen",
    "testing": ROOT / "testing" / "pallas_testing",
}
ELSEWHERE = {
    "only starts the program, which is run as a process": {
        "agent_runtime/__main__": "tests/agent_runtime/test_bad_input.py",
        "agent_runtime/local/warm/forker": "tests/agent_runtime/local/warm/test_parent.py",
        "agent_runtime/importing/image_texts": "tests/e2e/test_images.py",
        "agent_runtime/serve": "tests/agent_runtime/test_starting.py",
        "generator/__main__": "tests/e2e/test_cluster_options.py",
        "gateway/__main__": "tests/gateway/test_serve.py",
        "registry/__main__": "tests/registry/test_process.py",
    },
    "types and constants without a branch, tested by what decides with them": {
        "cli/trouble": "tests/cli/test_main.py",
        "gateway/unused_imports": "tests/gateway/test_imports.py",
        "registry/unused_imports": "tests/registry/test_imports.py",
        "contract/documents/health": "tests/contract/probe/test_probe.py",
        "contract/definitions/definition": "tests/contract/definitions/test_read.py",
        "contract/fleet/base": "tests/contract/fleet/test_resolved.py",
        "registry/dependencies": "tests/registry/mcp/test_server.py",
        "registry/discovery/sighting": "tests/registry/discovery/test_dns.py",
        "registry/discovery/source": "tests/registry/test_service.py",
        "registry/registration/errors": "tests/registry/mcp/test_registration.py",
        "gateway/data_plane/record": "tests/gateway/data_plane/test_plane.py",
        "generator/targets/base": "tests/generator/targets/test_table.py",
    },
    "a part of one answer, which is tested as it is sent": {
        "contract/documents/registry_api": "tests/registry/catalogue/test_official.py",
        "contract/documents/server_card": "tests/registry/catalogue/test_official.py",
        "contract/documents/server_json": "tests/registry/catalogue/test_catalogue.py",
        "contract/probe/http_connection": "tests/contract/probe/test_http_client.py",
        "contract/probe/session": "tests/contract/probe/test_probe.py",
        "gateway/confirmation/decisions": "tests/gateway/confirmation/test_api.py",
        "gateway/confirmation/shared": "tests/gateway/confirmation/test_confirmations.py",
        "gateway/data_plane/checks": "tests/gateway/confirmation/test_calls.py",
        "gateway/data_plane/errors": "tests/gateway/data_plane/test_plane.py",
        "gateway/data_plane/headers": "tests/gateway/data_plane/test_plane.py",
        "gateway/own/admission": "tests/gateway/own/test_server.py",
        "gateway/own/agents/agentlets": "tests/gateway/own/test_server.py",
        "gateway/own/execution/durable/graphs": "tests/gateway/own/execution/durable/test_durable_graphs.py",
        "gateway/own/execution/durable/live": "tests/gateway/own/execution/durable/test_durable_graphs.py",
        "gateway/own/execution/envelope": "tests/gateway/own/execution/test_executions.py",
        "gateway/own/execution/progress_stream": "tests/gateway/own/execution/test_graphs.py",
        "gateway/own/execution/run": "tests/gateway/own/execution/test_graphs.py",
        "gateway/own/execution/steps": "tests/gateway/own/execution/test_executions.py",
        "gateway/own/failures": "tests/gateway/own/test_server.py",
        "gateway/own/peers/objects": "tests/gateway/own/peers/test_peer.py",
        "gateway/own/prompts": "tests/gateway/own/test_server.py",
        "gateway/own/resources": "tests/gateway/own/test_server.py",
        "gateway/own/tools/calls": "tests/gateway/own/test_server.py",
        "gateway/state/store_urls": "tests/gateway/test_settings.py",
        "registry/catalogue/publisher": "tests/registry/test_service.py",
        "registry/http/metrics": "tests/registry/http/test_app.py",
        "registry/http/openapi": "tests/registry/http/test_any_request.py",
        "registry/mcp/tools": "tests/registry/mcp/test_server.py",
        "registry/prebuilt/documents": "tests/registry/prebuilt/test_fast_path.py",
        "registry/status_page/overview": "tests/registry/status_page/test_page.py",
        "service/http/protocol": "tests/registry/prebuilt/test_fast_path.py",
        "agent_runtime/metrics": "tests/agent_runtime/web/test_app.py",
        "agent_runtime/telemetry/redact": "tests/agent_runtime/telemetry/test_export.py",
        "agent_runtime/telemetry/spans": "tests/agent_runtime/telemetry/test_traces.py",
        "testing/model/exchange": "tests/testing/model/test_wire.py",
        "testing/model/scripted": "tests/testing/model/test_server.py",
        "testing/model/sending": "tests/testing/model/test_server.py",
        "testing/model/serving": "tests/testing/model/test_server.py",
    },
    "a rule over the whole file, tested with files": {
        "contract/fleet/access_model": "tests/contract/validate/test_access_rules.py",
        "contract/launch/addresses": "tests/contract/fleet/test_model.py",
        "contract/launch/credentials": "tests/contract/validate/test_access_rules.py",
        "contract/launch/secret_files": "tests/contract/launch/test_program.py",
        "contract/launch/start_order": "tests/contract/fleet/test_model.py",
        "contract/validate/graph_rules": "tests/contract/fleet/test_model.py",
        "contract/validate/entry/gateway_rules": "tests/generator/test_invalid.py",
        "contract/validate/entry/store_rules": "tests/generator/test_invalid.py",
        "contract/validate/entry/registered_rules": "tests/generator/test_invalid.py",
        "contract/validate/entry/policy_rules": "tests/generator/test_invalid.py",
        "contract/validate/entry/through_rules": "tests/generator/test_invalid.py",
        "contract/validate/entry/registration_rules": "tests/generator/test_invalid.py",
        "testing/model/script": "tests/testing/model/test_reader.py",
        "agent_runtime/access/build": "tests/agent_runtime/access/test_protected_agents.py",
        "service/access/arrangement": "tests/agent_runtime/access/test_protected_agents.py",
        "service/secret_text": "tests/agent_runtime/config/test_environment.py",
        "agent_runtime/engine/user_code": "tests/agent_runtime/engine/test_definition.py",
    },
    "a part of the running registry, tested in a whole service with a clock of its own": {
        "registry/loops": "tests/registry/test_service.py",
        "registry/monitor": "tests/registry/test_service.py",
        "registry/registration/messages": "tests/registry/mcp/test_registration.py",
        "registry/registration/registrar": "tests/registry/registration/test_registered.py",
    },
    "files that a command writes, tested as it writes them": {
        "cli/project/additions": "tests/cli/project/test_add.py",
        "cli/project/examples": "tests/cli/project/test_init.py",
        "cli/project/starter": "tests/cli/project/test_init.py",
    },
    "a step of the compiler, tested by what comes out": {
        "generator/commands/drawing/graph": "tests/generator/test_graph.py",
        "generator/front/door": "tests/generator/targets/test_edge_rules.py",
        "generator/targets/helm/edge/rules": "tests/generator/targets/test_edge_rules.py",
        "generator/targets/helm/edge/values": "tests/generator/targets/test_values.py",
        "service/http/reach": "tests/registry/registration/test_reach.py",
        "generator/console": "tests/generator/test_cli.py",
        "generator/output/write": "tests/generator/test_cli.py",
        "generator/output/yaml": "tests/generator/test_golden.py",
        "generator/project/configmaps": "tests/generator/targets/test_helm.py",
        "generator/project/load": "tests/generator/test_invalid.py",
        "generator/project/misfits": "tests/generator/test_invalid.py",
        "generator/project/mounts": "tests/generator/test_plan.py",
        "generator/commands/building/build_images": "tests/generator/commands/building/test_build.py",
        "generator/commands/lock_servers": "tests/generator/commands/test_lock.py",
        "generator/commands/building/build_settings": "tests/generator/commands/building/test_build.py",
        "generator/commands/targets": "tests/generator/targets/test_table.py",
        "generator/targets/image": "tests/generator/test_cli.py",
        "generator/targets/observed": "tests/generator/test_verify.py",
        "generator/targets/wording": "tests/generator/test_verify.py",
    },
    "a part of one report, tested by its verdicts on agents that are broken on purpose": {
        "testing/conformance/evidence": "tests/testing/conformance/test_rows.py",
        "testing/conformance/requirement": "tests/testing/conformance/test_rows.py",
        "testing/conformance/session": "tests/testing/conformance/test_run.py",
    },
    "what all targets share, tested with one of them": {
        "testing/targets/disk": "tests/testing/targets/test_compose.py",
        "testing/targets/base": "tests/testing/targets/test_processes.py",
        "testing/targets/listeners": "tests/testing/targets/test_processes.py",
        "testing/targets/table": "tests/testing/test_plugin.py",
    },
}
TESTED = {module: tests for modules in ELSEWHERE.values() for module, tests in modules.items()}


def modules(package: str) -> list[Path]:
    """Return the modules of a package, relative to it."""
    folder = PACKAGES[package]
    return sorted(path.relative_to(folder) for path in folder.rglob("*.py") if path.name != "__init__.py")


def expected(package: str, module: Path) -> list[Path]:
    """Return where a reader looks: a file of the module, or one of its whole room beside the room."""
    place = ROOT / "tests" / package / module.parent
    own = place / f"test_{module.stem.strip('_')}.py"
    return [own] if module.parent == Path() else [own, place.with_name(f"test_{place.name}.py")]


@pytest.mark.parametrize("package", PACKAGES)
def test_each_module_has_its_tests_where_a_reader_looks(package: str) -> None:
    files = {f"{package}/{module.with_suffix('')}": expected(package, module) for module in modules(package)}
    missing = {name: paths[0] for name, paths in files.items() if not any(path.exists() for path in paths)}
    unexplained = {name: str(path.relative_to(ROOT)) for name, path in missing.items() if name not in TESTED}
    assert unexplained == {}, "write these, or say in ELSEWHERE what tests the module"
    stale = [name for name in TESTED if name.startswith(f"{package}/") and name not in missing]
    assert stale == [], "stand in ELSEWHERE, but are gone or have tests of their own"


@pytest.mark.parametrize("tests", sorted(set(TESTED.values())))
def test_what_is_said_to_test_them_is_there(tests: str) -> None:
    assert (ROOT / tests).is_file()


def test_the_modules_that_begin_first_are_there() -> None:
    assert [name for name in LONGEST if not (ROOT / "tests" / name).is_file()] == []
