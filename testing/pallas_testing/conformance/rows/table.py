"""All requirements, by what they are judged on."""

from __future__ import annotations

from pallas_testing.conformance.evidence import Agent, Catalogue, Pages
from pallas_testing.conformance.requirement import Requirement
from pallas_testing.conformance.rows import agent, health, registry, servers, turn

REGISTRY: tuple[Requirement[Catalogue], ...] = (*registry.TABLE.rows, *servers.TABLE.rows)
PAGES: tuple[Requirement[Pages], ...] = tuple(health.PAGES.rows)
AGENT: tuple[Requirement[Agent], ...] = (*agent.TABLE.rows, *health.TABLE.rows, *turn.TABLE.rows)
