"""Documents of examples/04-percolate: what is malformed is named, is not taken in, and holds up nothing else."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import zlib
from functools import cache
from io import BytesIO
from pathlib import Path

import httpx
import pytest
from percolate.ingest import pdf as pdf_reader
from percolate.ingest import readers
from percolate.ingest.folder import Report, forget_others, ingest
from percolate.memory.databases import open_store
from percolate.memory.embeddings import Embedder, StandIn, embedder
from percolate.memory.pieces import Document, Piece
from percolate.memory.search import search
from percolate.memory.sqlite import SqliteStore
from percolate.memory.store import Kind, Store
from percolate.problems import Malformed, Problem
from percolate.settings import Settings
from pypdf import PdfWriter

from tests.installed import ROOT

pytestmark = pytest.mark.sqlite

DOCUMENTS = ROOT / "examples" / "04-percolate" / "documents"
TENANT = "acme"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tenant's folder with one document that is as it should be."""
    path = tmp_path / TENANT / "general"
    path.mkdir(parents=True)
    (path / "fine.md").write_text("Otters hold hands while they sleep.")
    return path.parent


def take_in(store: Store, folder: Path, embedder: Embedder | None = None, *, again: bool = False) -> Report:
    return ingest(store, embedder or StandIn(), folder, TENANT, again=again)


def found(store: Store, query: str, embedder: Embedder | None = None, limit: int = 5) -> list[str]:
    hits = search(store, embedder or StandIn(), tenant=TENANT, query=query, knowledge_base=None, limit=limit).hits
    return [hit.content for hit in hits]


def pdf(stream: bytes, filters: str = "") -> bytes:
    """Return a PDF with one page of this content, whose font is F1."""
    fonts = b"<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources << /Font %s >> /Contents 4 0 R >>" % fonts
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        page,
        b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(stream), filters.encode(), stream),
    ]
    body = b"%PDF-1.4\n"
    places = []
    for number, entry in enumerate(objects, 1):
        places.append(b"%010d 00000 n \n" % len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, entry)
    table = b"xref\n0 5\n0000000000 65535 f \n" + b"".join(places)
    return body + table + b"trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(body)


def encrypted() -> bytes:
    writer = PdfWriter(clone_from=DOCUMENTS / "test-tenant" / "documents" / "agreement.pdf")
    writer.encrypt("secret", algorithm="RC4-128")

    buffer = BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


@cache
def bomb() -> bytes:
    """Return a PDF of some hundred bytes that unpacks to 256 MiB."""
    packer = zlib.compressobj(1)
    block = bytes(1 << 20)
    once = b"".join(packer.compress(block) for _ in range(256)) + packer.flush()
    return pdf(zlib.compress(once, 9), "/Filter [/FlateDecode /FlateDecode]")


MALFORMED = {
    "latin1.txt": (lambda: "Motörhead".encode("latin-1"), "is not UTF-8, at byte 4: convert it"),
    "zeros.md": (lambda: b"a\0b", "has bytes of zero: it is no text"),
    "empty.txt": (lambda: b" \n", "has no text"),
    "picture.png": (lambda: b"\x89PNG", "is no document: .md, .pdf, .txt are"),
    "garbage.pdf": (lambda: b"no PDF at all", "is damaged: "),
    "scan.pdf": (lambda: pdf(b""), "has no text: a scan needs OCR first"),
    "bomb.pdf": (bomb, "unpacks to more than a document has: it may be a bomb"),
    "locked.pdf": (encrypted, "is encrypted: save it without a password"),
}


def test_what_is_malformed_is_named_and_all_the_rest_is_taken_in(store: Store, folder: Path) -> None:
    for name, (make, _) in MALFORMED.items():
        (folder / "general" / name).write_bytes(make())
    with (folder / "general" / "huge.txt").open("wb") as file:
        file.truncate(1 << 30)
    (folder / "attic").mkdir()
    (folder / "attic" / "old.md").write_text("Old.")
    report = take_in(store, folder)
    assert report.read == 1
    problems = dict(problem.split(" ", 1) for problem in report.problems)
    assert problems.pop("acme/general/huge.txt") == "has 1,024 MiB, and may have 8: split it"
    assert problems.pop("acme/attic/old.md").startswith("is in no knowledge base")
    assert {path.rpartition("/")[2] for path in problems} == MALFORMED.keys()
    for name, (_, expected) in MALFORMED.items():
        assert problems[f"acme/general/{name}"].startswith(expected), name
    assert found(store, "otters") == ["Otters hold hands while they sleep."]


def test_a_document_that_is_damaged_later_stays_as_it_was(store: Store, folder: Path) -> None:
    take_in(store, folder)
    (folder / "general" / "fine.md").write_bytes(b"\xff")
    assert take_in(store, folder).read == 0
    assert found(store, "otters") == ["Otters hold hands while they sleep."]
    (folder / "general" / "fine.md").write_text("Otters have pockets.")
    assert take_in(store, folder).read == 1
    assert found(store, "otters") == ["Otters have pockets."]
    assert take_in(store, folder).read == 0


def test_what_is_gone_from_the_folder_is_gone_from_the_memory(store: Store, folder: Path) -> None:
    (folder / "entities.yaml").write_text("entities: [{id: a, type: t, name: A}]")
    (folder / ".git").mkdir()
    (folder / ".git" / "note.md").write_text("Otters in a hidden folder.")
    assert take_in(store, folder).problems == []
    (folder / "general" / "fine.md").rename(folder / "general" / "other.md")
    (folder / "entities.yaml").unlink()
    take_in(store, folder)
    assert store.rows(TENANT, "SELECT source FROM documents") == [("resource://general/other.md",)]
    assert found(store, "otters") == ["Otters hold hands while they sleep."]
    assert store.rows(TENANT, "SELECT id FROM entities") == []


def test_a_tenant_whose_folder_is_gone_is_forgotten_and_the_library_is_not(store: Store, folder: Path) -> None:
    take_in(store, folder)
    ingest(store, StandIn(), folder, "library")
    forget_others(store, ["somebody"])
    assert store.digest(TENANT, "resource://general/fine.md") == ""
    assert store.digest("library", "resource://general/fine.md") != ""
    assert "library" in store.tenants()


def test_a_disk_that_is_full_is_named_and_the_rest_stays(folder: Path, tmp_path: Path) -> None:
    (folder / "general" / "huge.md").write_text("Badgers dig. " * 20_000)
    (folder / "general" / "last.md").write_text("Weasels dance.")
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)); "
        "from percolate.ingest.__main__ import main; sys.exit(main())"
    )
    (tmp_path / "documents").symlink_to(tmp_path)
    environment = os.environ | {"PYTHONPATH": str(DOCUMENTS.parent), "PERCOLATE_DATABASE": str(tmp_path / "memory.db")}
    done = subprocess.run(
        [sys.executable, "-c", program, TENANT],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    full = "does not fit: the disk of the memory, or its /tmp in a container, is full"
    assert (done.returncode, done.stdout) == (1, "2 documents read, 1 problems\n"), done.stderr
    assert done.stderr == f"acme/general/huge.md {full}\n"
    store = open_store(str(tmp_path / "memory.db"))
    try:
        assert found(store, "otters", limit=1) == ["Otters hold hands while they sleep."]
        assert found(store, "weasels", limit=1) == ["Weasels dance."]
    finally:
        store.close()


def test_text_without_letters_is_found_by_nothing_and_hides_nothing(store: Store, folder: Path) -> None:
    (folder / "general" / "rule.md").write_text("-----\n")
    assert take_in(store, folder).problems == []
    assert found(store, "otters") == ["Otters hold hands while they sleep."]
    assert found(store, "???") == []


def test_a_name_that_no_text_can_hold_is_named(store: Store, folder: Path) -> None:
    (folder / "general" / os.fsdecode(b"caf\xe9.md")).write_text("Coffee.")
    report = take_in(store, folder)
    assert report.problems == ["acme/general/caf\\udce9.md has a name that is not UTF-8: rename it"]
    assert report.read == 1


def test_a_pdf_may_wait_for_a_processor_and_not_use_one_for_ever(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reader = tmp_path / "endless.py"
    reader.write_text("import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 6))\nwhile True: pass\n")
    monkeypatch.setattr(pdf_reader, "__file__", str(reader))
    with pytest.raises(Malformed, match="was not read in 20 s of processor time: print it to a new PDF"):
        readers.read(DOCUMENTS / "test-tenant" / "documents" / "agreement.pdf", "s", "documents")


def test_characters_of_zero_are_no_text_that_a_database_could_hold(store: Store, folder: Path) -> None:
    (folder / "general" / "zero.pdf").write_bytes(pdf(b"BT /F1 12 Tf (Bad\\000gers dig.) Tj ET"))
    (folder / "entities.yaml").write_text('entities: [{id: "a\\0", type: t, name: A}]')
    (problem,) = take_in(store, folder).problems
    assert problem == "acme/entities.yaml entities.0.id: Value error, has a character of zero"
    assert "Bad gers dig." in found(store, "dig")


def test_a_name_that_no_key_can_hold_is_named(store: Store, folder: Path) -> None:
    deep = folder.joinpath("general", *5 * ["x" * 220])
    deep.mkdir(parents=True)
    (deep / "deep.md").write_text("Moles.")
    (problem,) = take_in(store, folder).problems
    assert problem.endswith("/deep.md has a name of 1120 bytes with its folders, and may have 1000: rename it")
    assert found(store, "otters") == ["Otters hold hands while they sleep."]


def test_no_score_tells_what_others_have(store: Store, folder: Path, tmp_path: Path) -> None:
    (folder / "general" / "two.md").write_text("Badgers dig, and otters swim.")
    take_in(store, folder)

    def scores() -> list[float]:
        found = search(store, StandIn(), tenant=TENANT, query="otters badgers hands", knowledge_base=None, limit=5)
        return [hit.score for hit in found.hits]

    before = scores()
    other = tmp_path / "other" / "general"
    other.mkdir(parents=True)
    for number in range(20):
        (other / f"{number}.md").write_text(f"Badgers, badgers, number {number}.")
    assert ingest(store, StandIn(), other.parent, "other").read == 20
    assert (len(before), scores()) == (2, before)


def test_a_link_out_of_the_folder_is_not_followed(store: Store, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("Otters know the password.")
    (folder / "general" / "link.md").symlink_to(tmp_path / "secret.md")
    assert take_in(store, folder).read == 1
    assert found(store, "password") == []


def test_a_graph_is_taken_in_whole_or_not_at_all_with_every_reason(store: Store, folder: Path) -> None:
    file = folder / "entities.yaml"
    file.write_text("entities: [{id: a, type: t, name: A}]")
    assert take_in(store, folder).problems == []
    entries = ["{id: b, type: t, name: B, related: [{relation: r, to: c}]}", "{id: b, type: t, name: B}"]
    file.write_text(f"entities: [{', '.join(entries)}]")
    (problem,) = take_in(store, folder).problems
    assert problem == "acme/entities.yaml `b` is there twice; `b` leads to `c`, which is not there"
    file.write_text("entities: [{id: b, type: t, colour: red}]")
    (problem,) = take_in(store, folder).problems
    assert "entities.0.name: Field required; entities.0.colour: Extra inputs are not permitted" in problem
    for value in ("2024-02-30", "9" * 5000):
        file.write_text(f"entities: [{{id: b, type: t, name: B, properties: {{due: {value}}}}}]")
        (problem,) = take_in(store, folder).problems
        assert problem.startswith("acme/entities.yaml has a value that there is not: "), problem
    for value in (".nan", ".inf", '"\\ud800"'):
        file.write_text(f"entities: [{{id: b, type: t, name: B, properties: {{due: [{value}]}}}}]")
        (problem,) = take_in(store, folder).problems
        assert problem.startswith("acme/entities.yaml"), problem
    file.write_text("entities: &all [*all]")
    assert take_in(store, folder).problems == ["acme/entities.yaml has an alias (`*name`): write it out"]
    assert store.rows(TENANT, "SELECT id FROM entities") == [("a",)]


class Provider:
    """An endpoint whose vectors have as many numbers as it is told; with 0 it is down."""

    def __init__(self, numbers: int) -> None:
        self.numbers = numbers
        self.embedder = self._embedder()

    def _embedder(self) -> Embedder:
        settings = Settings("", "https://embeddings.example/v1", "small", "sk-key")
        return embedder(settings, httpx.Client(transport=httpx.MockTransport(self._answer)))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer sk-key"
        if not self.numbers:
            raise httpx.ConnectError("refused")
        texts = json.loads(request.content)["input"]
        vector = [1.0] * self.numbers
        return httpx.Response(200, json={"data": [{"index": n, "embedding": vector} for n in range(len(texts))]})


def test_without_the_endpoint_documents_are_found_by_words_and_get_vectors_later(store: Store, folder: Path) -> None:
    provider = Provider(0)
    report = take_in(store, folder, provider.embedder)
    assert report.read == 1
    down = "the embedding endpoint embeddings.example gives no answer (ConnectError)"
    assert report.problems == [
        f"acme: {down}: 1 pieces are found by words only, until they are ingested again",
    ]
    answer = search(store, provider.embedder, tenant=TENANT, query="otters", knowledge_base=None, limit=5)
    assert ([hit.score for hit in answer.hits], answer.notice) == ([1.0], f"{down}: found by words only")
    provider.numbers = 3
    answer = search(store, provider.embedder, tenant=TENANT, query="otters", knowledge_base=None, limit=5)
    assert answer.notice == "1 pieces have no vector, and are found by words only, until they are ingested again"
    assert take_in(store, folder, provider.embedder).problems == []
    assert found(store, "something else", provider.embedder) == ["Otters hold hands while they sleep."]


def test_vectors_of_another_length_replace_none_until_one_says_so(store: Store, folder: Path) -> None:
    provider = Provider(3)
    take_in(store, folder, provider.embedder)
    provider.numbers = 4
    (folder / "general" / "new.md").write_text("Badgers dig.")
    (problem,) = take_in(store, folder, provider.embedder).problems
    assert "the memory has vectors of small, 3 numbers, and these are of small, 4 numbers (`--again` makes" in problem
    answer = search(store, provider.embedder, tenant=TENANT, query="otters", knowledge_base=None, limit=5)
    assert len(answer.hits) == 1
    assert "found by words only, until `python -m percolate.ingest --again` has run" in answer.notice
    provider.numbers = 0
    take_in(store, folder, provider.embedder, again=True)
    assert store.kinds(TENANT) == [Kind("small", 3)]
    provider.numbers = 4
    assert take_in(store, folder, provider.embedder, again=True).problems == []
    assert len(found(store, "something else", provider.embedder)) == 2


def test_another_endpoint_takes_no_vector_away_until_one_says_so(store: Store, folder: Path) -> None:
    provider = Provider(3)
    take_in(store, folder, provider.embedder)
    store.replace("other", *one_piece())
    store.put_vectors("other", "small", [(key, bytes(12)) for key, _ in store.without_vector("other")])
    (folder / "general" / "new.md").write_text("Badgers dig.")
    (problem,) = take_in(store, folder).problems  # a command that has no variables of the service
    assert "the memory has vectors of small, 3 numbers, and these are of letters, 256 numbers" in problem
    assert store.kinds(TENANT) == [Kind("small", 3)]
    answer = search(store, StandIn(), tenant=TENANT, query="badgers", knowledge_base=None, limit=5)
    assert [hit.content for hit in answer.hits] == ["Badgers dig."]
    assert "the memory has vectors of small, 3 numbers, and the query has one of letters, 256" in answer.notice
    assert take_in(store, folder, again=True).problems == []
    assert (store.kinds(TENANT), store.kinds("other")) == ([Kind("letters", 256)], [Kind("small", 3)])


def one_piece() -> tuple[Document, list[Piece]]:
    return Document("resource://general/a.md", "general", "markdown", "d", [(None, "A.")]), [Piece(None, 0, "A.")]


def test_who_cannot_write_is_told_why_and_nothing_is_lost(folder: Path, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    take_in(store, folder)
    store.rows(TENANT, "PRAGMA busy_timeout = 1")
    other = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    (folder / "general" / "new.md").write_text("Badgers dig.")
    with pytest.raises(Problem, match="the memory cannot be written: database is locked: nothing of it was lost"):
        take_in(store, folder)
    other.close()
    assert take_in(store, folder).read == 1
    store.close()
    with pytest.raises(Problem, match=r"absent/memory\.db: unable to open database file: is its folder there"):
        SqliteStore(tmp_path / "absent" / "memory.db")


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (401, "{}", "answers HTTP 401"),
        (200, "<html>", "answers no list of embeddings"),
        (200, '{"data": []}', "answers 0 vectors for 1 texts"),
        (200, '{"data": [{"index": 0, "embedding": [1, "x"]}]}', "answers no list of embeddings"),
        (200, '{"data": [{"index": 0, "embedding": [NaN]}]}', "answers no list of embeddings"),
    ],
)
def test_an_endpoint_that_answers_nonsense_is_named(
    store: Store, folder: Path, status: int, body: str, reason: str
) -> None:
    settings = Settings("", "https://embeddings.example/v1")
    answering = httpx.MockTransport(lambda _: httpx.Response(status, text=body))
    (problem,) = take_in(store, folder, embedder(settings, httpx.Client(transport=answering))).problems
    assert problem.startswith(f"acme: the embedding endpoint embeddings.example {reason}: 1 pieces")
    assert found(store, "otters") == ["Otters hold hands while they sleep."]


def test_the_command_says_what_it_could_not_take_in_and_ends_with_1(tmp_path: Path) -> None:
    example = DOCUMENTS.parent
    (tmp_path / "documents" / TENANT / "general").mkdir(parents=True)
    (tmp_path / "documents" / TENANT / "general" / "a.md").write_text("A.")
    environment = os.environ | {"PYTHONPATH": str(example), "PERCOLATE_DATABASE": "memory.db"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "percolate.ingest", *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment)

    done = run()
    assert (done.returncode, done.stdout) == (0, "1 documents read, 0 problems\n")
    assert run("nobody").returncode == 2
    (tmp_path / "memory.db").write_text("no database at all, but text that is long enough" * 10)
    (tmp_path / "memory.db-wal").unlink(missing_ok=True)
    done = run()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "memory.db: file is not a database: move it away, and the memory begins anew\n"
