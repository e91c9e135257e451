"""Make an image's virtual environment smaller without changing what runs: `shrink.py [--closed] VENV [IMPORTED]`.

`shrink.py --pack VENV`, once all is compiled, compresses the sources of its packages, each in its place.

Part of the image builds. Prints the sources whose bytecode belongs into the image, sorted, each ended by a NUL. File
IMPORTED has the modules that an agent imports, a path on each line, as `shrink.py --imported` prints them: run by the
Python of that environment it imports what agents do, and has each provider's client try a call.

Removed, and why nothing misses it:
- test suites and benchmarks that packages ship in themselves: imported by their own runs only;
- sources of compiled extensions (.c, .pyx, .pxd, .h): the compiled module is beside them;
- hf_xet: a transfer accelerator; huggingface_hub asks whether it is there before a download and does without. Some of
  its uploads may need it, and agents upload nothing;
- what wcwidth knows of single terminals, which it does without: a container has none;
- what follows the last loaded segment of a shared library: symbol tables and debug sections, which the dynamic linker
  never reads (it works from program headers; exported symbols are inside the segments);
- with `--closed`, for an image into which nobody's code comes: pygments' lexers but those for what a log shows. Rich
  asks it by name and shows plain text where there is none. In an agent's image a fleet may require pygments, which is
  then installed already, and has to be whole.

No bytecode: what only a command line, a terminal or another protocol's server imports; and of the packages in
`PARTLY`, which have many times what an agent uses, what it does not import. It works, read from its source.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import hashlib
import importlib.util
import os
import pkgutil
import re
import shutil
import struct
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

TESTS = (
    "fsspec/tests",
    "google/genai/tests",
    "jsonrpc/tests",
    "jsonschema/benchmarks",
    "jsonschema/tests",
    "referencing/tests",
    "regex/tests",
)
UNUSED = ("hf_xet", "hf_xet-*.dist-info")
BUILD_INPUTS = ("*.c", "*.pyx", "*.pxd", "*.h")
TERMINALS = "wcwidth/table_grapheme_overrides/_known_*.py"
LEXERS = ("__init__", "_mapping", "data", "diff", "python", "shell", "special")
"""Modules of pygments.lexers that show what is in a log."""
NOT_COMPILED = (
    "a2a/compat",
    "a2a/server",
    "authlib",
    "cyclopts",
    "fast_agent/acp",
    "fast_agent/batch",
    "fast_agent/cli",
    "fast_agent/eval",
    "fastmcp/cli",
    "fsspec/implementations",
    "griffe",
    "huggingface_hub/cli",
    "pydantic/v1",
    "pygments/lexers",
    "rich_rst",
)
"""tests/e2e/test_images.py holds that no agent that serves imports any of them."""
NOT_SERVED = ("markdown_it", "mdurl", "shellingham", "typer")
"""The same with `--closed`: no registry that serves imports any of them."""
PARTLY = (
    "a2a",
    "acp",
    "anthropic",
    "beartype",
    "dns",
    "fastmcp",
    "google",
    "huggingface_hub",
    "key_value",
    "openai",
    "prompt_toolkit",
    "pyasn1_modules",
    "valkey",
    "websockets",
)
"""The same test has each API answer a turn, and finds the bytecode of all that was imported for it."""
WALKED = ("fast_agent.agents", "fast_agent.core", "fast_agent.llm", "fast_agent.mcp", "fast_agent.tools")
ALSO = (
    "dns.asyncresolver",
    "fastmcp.server.server",
    "google.auth.compute_engine",
    "google.auth.transport.requests",
    "google.oauth2.service_account",
    "huggingface_hub.hf_api",
    "valkey.asyncio",
    "websockets.asyncio.client",
)
"""What agents, their servers and the gateway import beside these, some of it only with certain settings."""
NOWHERE = "http://127.0.0.1:9"
PLAIN = ("fast_agent/resources", "key_value")
"""Not packed: sources that are copied to users, and a package whose sources beartype reads and changes itself."""
HOOK = "import pallas_service.packed_sources; pallas_service.packed_sources.install()\n"
"""In a `.pth` file each Python of the environment runs it before anything else (the documentation of `site`)."""

ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
SECTION_OFFSET = slice(40, 48)
SECTION_COUNTS = slice(58, 64)


def loaded_size(image: bytes) -> int:
    """Bytes of an ELF file up to the end of the last thing its program headers name."""
    (table,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    ends = (sum(struct.unpack_from("<8xQ16xQ", image, table + i * size)) for i in range(count))
    return max(table + size * count, *ends)


def strip(library: Path) -> None:
    image = bytearray(library.read_bytes())
    if not image.startswith(ELF64_LITTLE_ENDIAN):
        return
    image[SECTION_OFFSET] = bytes(8)
    image[SECTION_COUNTS] = bytes(6)
    library.write_bytes(image[: loaded_size(bytes(image))])


def shrink(site_packages: Path) -> None:
    for pattern in (*TESTS, *UNUSED):
        for path in site_packages.glob(pattern):
            shutil.rmtree(path)
    for path in site_packages.glob(TERMINALS):
        path.unlink()
    for pattern in BUILD_INPUTS:
        for path in site_packages.rglob(pattern):
            path.unlink()
    for library in site_packages.rglob("*.so*"):
        if library.is_file() and not library.is_symlink():
            strip(library)


def thin_lexers(site_packages: Path) -> None:
    """Take most of pygments' lexers away, and out of the table by which it finds them."""
    folder = site_packages / "pygments" / "lexers"
    for path in folder.glob("*.py"):
        if path.stem not in LEXERS:
            path.unlink()
    table = folder / "_mapping.py"
    if table.is_file():
        lines = table.read_text("utf-8").splitlines(keepends=True)
        gone = re.compile(rf"    '\w+': \('pygments\.lexers\.(?!(?:{'|'.join(LEXERS)})')")
        table.write_text("".join(line for line in lines if not gone.match(line)), "utf-8")


def compiled(site_packages: Path, imported: Collection[str] = (), others: Collection[str] = ()) -> Iterator[Path]:
    """Yield the sources that are worth their bytecode, sorted: none of `others`, and of `PARTLY` what is imported.

    All of these where nothing is known of imports.
    """
    partly = PARTLY if imported else ()
    folders = {site_packages / name for name in (*NOT_COMPILED, *partly, *others)}
    usual = {site_packages / "pygments" / "lexers" / f"{name}.py" for name in LEXERS} | set(map(Path, imported))
    for path in sorted(site_packages.rglob("*.py")):
        if path in usual or folders.isdisjoint(path.parents):
            yield path


def pack(site_packages: Path) -> None:
    """Compress the sources of all packages, and have them found; the same sources give the same bytes."""
    plain = {site_packages / name for name in PLAIN}
    packed: dict[str, str] = {}
    for path in sorted(site_packages.rglob("*.py")):
        if plain.isdisjoint(path.parents):
            content = gzip.compress(path.read_bytes(), mtime=0)
            path.with_suffix(".py.gz").write_bytes(content)
            path.unlink()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            packed[path.relative_to(site_packages).as_posix()] = f"sha256={digest},{len(content)}"
    for record in sorted(site_packages.glob("*.dist-info/RECORD")):
        lines = [line for each in record.read_text("utf-8").splitlines() for line in _recorded(each, packed)]
        record.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (site_packages / "pallas_packed_sources.pth").write_text(HOOK)


def _recorded(line: str, packed: Mapping[str, str]) -> Iterator[str]:
    """Yield a line of a RECORD; of a file that is packed what it is now, and its bytecode. pip uninstalls by them."""
    name = line.partition(",")[0]
    if name not in packed:
        yield line
        return
    yield f"{name}.gz,{packed[name]}"
    yield f"{importlib.util.cache_from_source(name)},,"


def imported() -> list[str]:
    """Import what agents do; return the files of all modules there are then, sorted.

    Without the proxy of who builds, which a build is told: the calls would go there, and wait for what it says.
    """
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    for package in WALKED:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            with contextlib.suppress(ImportError):  # a provider whose library is not brought along
                importlib.import_module(module.name)
    for name in ALSO:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    asyncio.run(_ask())
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return sorted({file for file in files if file})


async def _ask() -> None:
    """Have each provider's client send a request to where nobody listens: it imports resources when it is asked."""
    from anthropic import AsyncAnthropic  # noqa: PLC0415 - of the environment that is looked at
    from google import genai  # noqa: PLC0415
    from openai import AsyncOpenAI  # noqa: PLC0415

    messages = [{"role": "user", "content": "hi"}]
    openai = AsyncOpenAI(api_key="none", base_url=NOWHERE, max_retries=0)
    anthropic = AsyncAnthropic(api_key="none", base_url=NOWHERE, max_retries=0)
    models = genai.Client(api_key="none", http_options={"base_url": NOWHERE}).aio.models
    claude = {"model": "m", "messages": messages, "max_tokens": 1}
    for ask in (
        lambda: openai.chat.completions.create(model="m", messages=messages),
        lambda: openai.responses.create(model="m", input="hi"),
        lambda: openai.responses.stream(model="m", input="hi").__aenter__(),
        lambda: openai.responses.connect().__aenter__(),
        lambda: openai.files.create(file=b"hi", purpose="user_data"),
        openai.models.list,
        lambda: anthropic.messages.create(**claude),
        lambda: anthropic.messages.stream(**claude).__aenter__(),
        lambda: anthropic.beta.messages.create(**claude),
        lambda: anthropic.beta.messages.stream(**claude).__aenter__(),
        lambda: anthropic.beta.files.upload(file=b"hi"),
        anthropic.models.list,
        lambda: models.generate_content(model="m", contents="hi"),
        lambda: models.generate_content_stream(model="m", contents="hi"),
    ):
        with contextlib.suppress(Exception):  # nobody answers; what is imported on the way there counts
            await ask()


if __name__ == "__main__":
    if sys.argv[1:] == ["--imported"]:
        print(*imported(), sep="\n")
        sys.exit()
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    venv, *lists = [word for word in sys.argv[1:] if word not in options]
    used = [line for name in lists for line in Path(name).read_text("utf-8").splitlines()]
    for folder in Path(venv).glob("lib/python*/site-packages"):
        if "--pack" in options:
            pack(folder)
            continue
        shrink(folder)
        if "--closed" in options:
            thin_lexers(folder)
        for source in compiled(folder, used, NOT_SERVED if "--closed" in options else ()):
            sys.stdout.write(f"{source}\0")
