"""Blocks of a NetworkPolicy leave out where clouds hand out credentials."""

from __future__ import annotations

import pytest

from pallas_contract import names
from pallas_gen.targets.helm.ip_blocks import WORLD, ip_block


def test_the_whole_world_has_all_holes() -> None:
    blocks = [ip_block(cidr)["ipBlock"] for cidr in WORLD]
    assert [block["cidr"] for block in blocks] == list(WORLD)
    assert sorted(hole for block in blocks for hole in block["except"]) == sorted(names.CLOUD_METADATA)


def test_a_block_has_the_holes_that_are_in_it() -> None:
    assert ip_block("10.1.0.0/16") == {"ipBlock": {"cidr": "10.1.0.0/16"}}
    assert ip_block("168.63.0.0/16") == {"ipBlock": {"cidr": "168.63.0.0/16", "except": ["168.63.129.16/32"]}}


def test_the_exception_is_never_the_block_itself() -> None:
    for hole in names.CLOUD_METADATA:
        assert "except" not in ip_block(hole)["ipBlock"]


def test_no_network_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        ip_block("nowhere")
