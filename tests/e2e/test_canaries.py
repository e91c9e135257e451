"""The search for planted secrets finds what is there; test_stranger.py and test_baked.py search with it."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from . import canaries
from .canaries import Canaries

BIRDS = Canaries("0123456789ab")
WORD = BIRDS.plant("a file").encode()
OTHER = BIRDS.plant("another").encode()


def tar(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content * 9)
    return file.getvalue()


@pytest.mark.parametrize("before", [b"", b"x", b"me"])
def test_a_word_is_found_as_it_is_and_in_base64(before: bytes) -> None:
    assert BIRDS.within(before + WORD + b"\n") == {"a file"}
    assert BIRDS.within(base64.b64encode(before + WORD + b":rest of it")) == {"a file"}
    assert BIRDS.within(base64.b64encode(before + WORD + OTHER)) == {"a file", "another"}
    assert BIRDS.within(before + WORD[:-8]) == set()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, lambda content: zipped("x", content)])
def test_what_is_packed_in_a_layer_is_unpacked(pack) -> None:
    image = tar("blobs/sha256/ab", tar("etc/x.packed", pack(b"key = " + WORD)))
    names = [name for name, content in canaries.pieces("", image) if BIRDS.within(content)]
    assert [name.partition("!etc/x.packed!")[0] for name in names] == ["blobs/sha256/ab"]
    assert not any(BIRDS.within(content) for _, content in canaries.pieces("", image, {"ab"}))


def test_a_name_counts_too_and_what_only_begins_like_an_archive_is_a_file() -> None:
    layer = tar("blobs/sha256/ab", tar(WORD.decode(), b"PK\x03\x04 and no more"))
    assert any(BIRDS.within(name.encode()) for name, _ in canaries.pieces("", layer))
    assert [content for name, content in canaries.pieces("", layer) if content] == [b"PK\x03\x04 and no more"]
