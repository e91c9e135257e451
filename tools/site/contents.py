"""The contents of the site: sections and their pages, by path in the repository, in the order of a reader's way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

FLEET_FILE = "reference/agents-yaml.md"
COMMANDS = ("reference/pallas.md", "reference/pallas-gen.md", "reference/pallas-testing.md")
MADE = (FLEET_FILE, *COMMANDS)
"""Pages that are made from the code when the site is built."""
SECTIONS: Mapping[str, Sequence[str]] = {
    "Begin": ("docs/tutorial.md", "docs/install.md", "docs/first-agent.md", "docs/concepts.md", "docs/glossary.md"),
    "Build a fleet": (
        "docs/services.md",
        "docs/models.md",
        "docs/secrets.md",
        "docs/access.md",
        "docs/gateway.md",
        "docs/networks.md",
        "docs/images.md",
    ),
    "Run it": (
        "docs/commands.md",
        "docs/kubernetes.md",
        "deploy/helm/pallas/README.md",
        "docs/telemetry.md",
        "docs/registration.md",
        "docs/upgrade.md",
        "docs/air-gap.md",
        "docs/scale.md",
        "docs/scale-registry.md",
    ),
    "Test it": ("docs/testing.md", "docs/ci.md", "docs/scripted-model.md", "docs/conformance.md", "docs/daedalus.md"),
    "Examples": (
        "examples/01-hello/README.md",
        "examples/02-pallas/README.md",
        "examples/03-data-pool/README.md",
        "examples/04-percolate/README.md",
        "examples/05-atlas/README.md",
    ),
    "Reference": (
        FLEET_FILE,
        *COMMANDS,
        "docs/problems.md",
        "docs/registry.md",
        "docs/agent.md",
        "docs/pallas-contract.md",
    ),
    "About": (
        "README.md",
        "docs/comparison.md",
        "docs/proof.md",
        "benchmarks/README.md",
        "docs/seeds.md",
        "docs/design.md",
        "docs/decisions/README.md",
        "docs/release.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ),
}
"""Caption -> its pages. Pages that another one lists (the decisions) come below that one."""
BELOW: Mapping[str, str] = {"docs/decisions/README.md": "docs/decisions/[0-9]*.md"}
"""Page -> pattern of the pages below it."""
