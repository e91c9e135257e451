"""A report as text, JSON or JUnit; the same findings give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from xml.etree import ElementTree

from pallas_testing.conformance.requirement import Finding
from pallas_testing.conformance.run import Report

_WORDS = {"held": "held", "broken": "BROKEN", "not asked": "not asked"}


def text(report: Report) -> str:
    """Return the report for people."""
    lines = [f"{report.kind} {report.url}", ""]
    for finding in report.findings:
        lines += _lines(finding)
    lines += ["", _count(report)]
    return "\n".join(lines) + "\n"


def broken(report: Report) -> str:
    """Return what is broken, and nothing else."""
    lines = [f"{report.kind} {report.url} does not keep the contract: {_count(report)}"]
    for finding in report.of("broken"):
        lines += _lines(finding)
    return "\n".join(lines)


def _lines(finding: Finding) -> Iterator[str]:
    remark = f": {finding.remark}" if finding.remark else ""
    name = f"{finding.id} {finding.era}".rstrip()
    yield f"{_WORDS[finding.verdict]:<9}  {name}{remark}"
    if finding.verdict == "broken":
        yield f"           {_sentence(finding)}"
        yield f"           sent      {finding.sent}"
        yield f"           received  {finding.received}"
        yield f"           right     {finding.right}"


def _sentence(finding: Finding) -> str:
    differs = f" (the kit differs by decision {finding.decision})" if finding.decision else ""
    return f"{finding.source}: {finding.sentence}{differs}"


def _count(report: Report) -> str:
    return ", ".join(f"{len(report.of(verdict))} {verdict}" for verdict in _WORDS)


def as_json(report: Report) -> str:
    """Return the report for programs; fields without a value are left away."""
    findings = [{key: value for key, value in asdict(finding).items() if value} for finding in report.findings]
    document = {"kind": report.kind, "url": report.url, "conformant": report.conformant, "findings": findings}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def junit(report: Report) -> str:
    """Return the report for CI: a test case for each finding."""
    counts = {
        "tests": len(report.findings),
        "failures": len(report.of("broken")),
        "skipped": len(report.of("not asked")),
    }
    numbers = {key: str(count) for key, count in counts.items()}
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        suites, "testsuite", {"name": f"{report.kind} {report.url}", "errors": "0", **numbers}
    )
    for finding in report.findings:
        name = f"{finding.id} {finding.era}".rstrip()
        case = ElementTree.SubElement(suite, "testcase", classname=f"conformance.{report.kind}", name=name)
        if finding.verdict == "not asked":
            ElementTree.SubElement(case, "skipped", message=finding.remark)
        if finding.verdict == "broken":
            failure = ElementTree.SubElement(case, "failure", message=_sentence(finding))
            parts = (f"sent: {finding.sent}", f"received: {finding.received}", f"right: {finding.right}")
            failure.text = "\n".join(parts)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


FORMATS: Mapping[str, Callable[[Report], str]] = {"text": text, "json": as_json, "junit": junit}
