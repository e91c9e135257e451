"""What an image holds, as a container would see it."""

from __future__ import annotations

from pathlib import Path

from pallas_gen.images import inventory
from pallas_gen.images.inventory import Component
from tests.tools.supply_chain import saved
from tools.supply_chain.image import oci

SITE = "opt/venv/lib/python3.13/site-packages"
STATUS = b"""\
Package: libc6
Status: install ok installed
Section: libs
Architecture: amd64
Version: 2.41-12+deb13u2

Package: gone
Status: deinstall ok config-files
Section: libs
Architecture: amd64
Version: 1
"""
COPYRIGHT = b"Format: dep5\n\nFiles: *\nLicense: LGPL-2.1+\n text\n\nLicense: GPL-2\n"


def metadata(name: str, *lines: str) -> dict[str, bytes]:
    text = "\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *lines, "", "A description"])
    return {f"{SITE}/{name}-1.0.dist-info/METADATA": text.encode()}


def components(folder: Path, *layers: dict[str, bytes]) -> list[Component]:
    contents = [saved.layer(files, 1) for files in layers]
    base = saved.image(folder / "saved.tar", contents, time="2026-01-01T00:00:00Z")
    return inventory.components(oci.read(folder / "saved.tar", folder, name="a:1", base=base, epoch=1))


def test_all_three_kinds_are_listed(tmp_path: Path) -> None:
    debian = {"var/lib/dpkg/status": STATUS, "usr/share/doc/libc6/copyright": COPYRIGHT}
    listed = components(tmp_path, debian, metadata("Zope_Thing", "License-Expression: ZPL-2.1"))
    assert [(item.kind, item.name, item.version, item.licence) for item in listed] == [
        ("debian", "libc6", "2.41-12+deb13u2", "GPL-2 AND LGPL-2.1+"),
        ("python", "Zope_Thing", "1.0", "ZPL-2.1"),
        ("runtime", "python", "3.13.7", "PSF-2.0"),
    ]
    assert [item.purl for item in listed] == [
        "pkg:deb/debian/libc6@2.41-12%2Bdeb13u2?arch=amd64",
        "pkg:pypi/zope-thing@1.0",
        "pkg:generic/python@3.13.7",
    ]
    assert listed[0].section == "libs"


def test_what_a_later_layer_takes_away_is_not_listed(tmp_path: Path) -> None:
    layers = (
        {**metadata("pip"), **metadata("kept"), "usr/lib/x/old-1.0.dist-info/METADATA": b"Name: old\nVersion: 1\n"},
        {f"{SITE}/.wh.pip-1.0.dist-info": b"", "usr/lib/x/.wh..wh..opq": b""},
    )
    assert [item.name for item in components(tmp_path, *layers) if item.kind == "python"] == ["kept"]


def test_licences_are_read_where_packages_say_them(tmp_path: Path) -> None:
    long = "MIT License\n Permission is hereby granted"
    files = {
        **metadata(
            "by-expression",
            "License-Expression: MIT OR Apache-2.0",
            "Classifier: License :: OSI Approved :: BSD License",
        ),
        **metadata("by-classifier", "License: see file", "Classifier: License :: OSI Approved :: MIT License"),
        **metadata("by-field", "License: BSD-3-Clause"),
        **metadata("by-text", f"License: {long}"),
        **metadata("by-nothing"),
    }
    listed = components(tmp_path, {}, files)
    assert {item.name: item.licence for item in listed if item.kind == "python"} == {
        "by-expression": "MIT OR Apache-2.0",
        "by-classifier": "MIT",
        "by-field": "BSD-3-Clause",
        "by-text": "",
        "by-nothing": "",
    }


def test_one_unknown_classifier_leaves_no_licence(tmp_path: Path) -> None:
    group, mit = ("Classifier: License :: OSI Approved", "Classifier: License :: OSI Approved :: MIT License")
    gpl = "Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)"
    files = {
        **metadata("group", group, "Classifier: License :: DFSG approved", mit),
        **metadata("group-only", group, "License: MIT"),
        **metadata("mixed", mit, gpl),
        **metadata("copyleft", gpl, "License: MIT"),
    }
    assert {item.name: item.licence for item in components(tmp_path, {}, files) if item.kind == "python"} == {
        "group": "MIT",
        "group-only": "MIT",
        "mixed": "",
        "copyleft": "",
    }
