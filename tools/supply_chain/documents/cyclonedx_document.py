"""Requests on stdin, a list of texts in JSON -> as many SBOMs in CycloneDX 1.6 on stdout, held to its schema.

Run by the Python of the release's own environment, which has the library, and none of the kit: `sbom.py` calls it.
"""

from __future__ import annotations

import json
import sys
import uuid
from datetime import UTC, datetime
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

NAMESPACE = uuid.UUID("8a3a5c6e-3f0a-5d7e-9a55-5f4d6b0c2f10")
"""Of serial numbers: equal content has an equal one."""
VALIDATOR = JsonStrictValidator(SchemaVersion.V1_6)


def component(entry: dict[str, Any]) -> Component:
    licence = entry["licence"]
    return Component(
        bom_ref=entry["purl"],
        type=ComponentType(entry["type"]),
        name=entry["name"],
        version=entry["version"],
        purl=PackageURL.from_string(entry["purl"]),
        scope=ComponentScope(entry["scope"]) if entry.get("scope") else None,
        licenses=[LicenseFactory().make_from_string(licence)] if licence else None,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=entry["sha256"])] if entry.get("sha256") else None,
        properties=[Property(name=name, value=value) for name, value in sorted(entry.get("properties", {}).items())],
    )


def document(text: str) -> str:
    request = json.loads(text)
    bom = Bom(serial_number=uuid.uuid5(NAMESPACE, text))
    bom.metadata.timestamp = datetime.fromtimestamp(request["epoch"], UTC)
    subject = component(request["subject"])
    bom.metadata.component = subject
    parts = [component(entry) for entry in request["components"]]
    for part in parts:
        bom.components.add(part)
    bom.register_dependency(subject, parts)
    result = JsonV1Dot6(bom).output_as_string(indent=2)
    flaw = VALIDATOR.validate_str(result)
    if flaw is not None:
        sys.exit(f"the SBOM of {request['subject']['name']} is not CycloneDX 1.6: {flaw}")
    return f"{result}\n"


if __name__ == "__main__":
    json.dump([document(text) for text in json.load(sys.stdin)], sys.stdout)
