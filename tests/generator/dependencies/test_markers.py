"""What is installed into an image by its marker, and by another one is not."""

from __future__ import annotations

import pytest

from pallas_gen.dependencies import markers


@pytest.mark.parametrize(
    ("marker", "installed"),
    [
        ('sys_platform == "win32"', False),
        ("sys_platform != 'win32'", True),
        ("'win' in sys_platform", False),
        ("'linux' in sys_platform", True),
        ("sys_platform not in 'darwin win32'", True),
        ("os_name == 'nt' or sys_platform == 'cygwin'", False),
        ("(os_name == 'nt' or sys_platform == 'linux') and platform_system == 'Linux'", True),
        ("python_version < '3.11'", False),
        ("python_version >= '3.9'", True),  # as numbers, not as text
        ("python_version == '3.13.0'", True),
        ("'3.20' > python_version", True),
        ("implementation_name == 'pypy'", False),
        # Not certain: then it counts as installed.
        ("platform_machine == 'arm64'", True),
        ("platform_machine == 'arm64' and sys_platform == 'win32'", False),
        ("platform_machine == 'arm64' or sys_platform == 'linux'", True),
        ("python_version ~= '2.7'", True),
        ("python_version == '2.*'", True),
        ("sys_platform == os_name", True),
        ("nonsense", True),
        ("sys_platform ==", True),
        ("'a' < 'b' < 'c'", True),
        ("sys_platform == 1", True),
        ("(" * 5000, True),
        ("", True),
    ],
)
def test_a_marker_is_that_of_the_image(marker: str, installed: bool) -> None:
    assert markers.applies(marker) is installed
