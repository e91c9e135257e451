"""The mounted files: followed through edits, renames and mistakes."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from pallas_contract.problems import Refused
from pallas_registry import fleet_file
from pallas_registry.fleet_file import FleetWatcher


class Panic(BaseException):
    """As pydantic's core raises one, which is no Exception."""


def names(loaded) -> list[str]:
    return list(loaded.fleet.agents)


def settled(follower: FleetWatcher):
    """Two polls: the change is noticed, then it has stood still."""
    assert follower.poll() is None
    return follower.poll()


def test_the_first_reading(folder: Path) -> None:
    follower = FleetWatcher(folder / "agents.yaml")
    loaded = follower.first()
    assert names(loaded) == ["harper", "tech_research"]
    assert loaded.capabilities is not None
    assert loaded.capabilities.model == "my-model-name"
    assert follower.ok


def test_errors_of_both_files_come_at_once(folder: Path) -> None:
    (folder / "agents.yaml").write_text("name: demo\nagentz: {}\n")
    (folder / "fastagent.config.yaml").write_text("- a list\n")
    with pytest.raises(Refused) as refused:
        fleet_file.load(folder / "agents.yaml")
    assert {problem.where.file for problem in refused.value.problems} == {"agents.yaml", "fastagent.config.yaml"}


def test_the_model_file_may_be_missing(folder: Path) -> None:
    (folder / "fastagent.config.yaml").unlink()
    assert fleet_file.load(folder / "agents.yaml").capabilities is None


def test_nothing_changed_nothing_read(folder: Path) -> None:
    follower = FleetWatcher(folder / "agents.yaml")
    follower.first()
    assert [follower.poll() for _ in range(3)] == [None, None, None]


def test_an_edit_in_place(folder: Path) -> None:
    file = folder / "agents.yaml"
    follower = FleetWatcher(file)
    follower.first()
    file.write_text(file.read_text() + "  engineering: {module: agents.engineering, port: 8260}\n")
    assert names(settled(follower)) == ["harper", "tech_research", "engineering"]
    assert follower.poll() is None


def test_an_editors_rename_over_the_file(folder: Path) -> None:
    file = folder / "agents.yaml"
    follower = FleetWatcher(file)
    follower.first()
    new = folder / ".agents.yaml.swp"
    new.write_text(file.read_text().replace("tech_research", "web_research"))
    stat = file.stat()
    new.rename(file)
    assert file.stat().st_ino != stat.st_ino
    assert names(settled(follower)) == ["harper", "web_research"]


def test_a_file_mounted_alone_that_was_replaced_on_the_host(folder: Path) -> None:
    """As in a container, the watched path still leads to the file that lost its name."""
    file = folder / "agents.yaml"
    with file.open() as mounted:
        follower = FleetWatcher(Path(f"/proc/self/fd/{mounted.fileno()}"))
        follower.first()
        file.unlink()
        with pytest.raises(Refused, match="was replaced on the host, and this container still has the old one"):
            settled(follower)
    assert follower.ok is False


def test_the_model_file_is_followed_too(folder: Path) -> None:
    follower = FleetWatcher(folder / "agents.yaml")
    follower.first()
    config = folder / "fastagent.config.yaml"
    config.write_text(config.read_text().replace("my-model-name", "another"))
    assert settled(follower).capabilities.model == "another"
    (folder / "fast-agent.yaml").write_text(config.read_text().replace("another", "third"))
    with pytest.raises(Refused, match=r"fast-agent\.yaml: is there, and so is fastagent\.config\.yaml"):
        settled(follower)
    config.unlink()
    assert settled(follower).capabilities.model == "third"


def test_the_number_of_replicas_is_followed_too(folder: Path) -> None:
    follower = FleetWatcher(folder / "agents.yaml")
    assert follower.first().expected_replicas("harper") == 1
    (folder / ".replicas.json").write_text('{"harper": 3}')
    loaded = settled(follower)
    assert (loaded.expected_replicas("harper"), loaded.expected_replicas("tech_research")) == (3, 1)


@pytest.mark.parametrize("text", ["[]", '{"harper": 0}', '{"harper": "many"}', "{"])
def test_numbers_that_are_none_are_refused(folder: Path, text: str) -> None:
    (folder / ".replicas.json").write_text(text)
    with pytest.raises(Refused, match=r"\.replicas\.json: must be a JSON object of agents"):
        fleet_file.load(folder / "agents.yaml")


def test_a_huge_file_takes_no_memory_and_a_pipe_no_thread(folder: Path) -> None:
    """In the place of any file that is followed; the one of before, put back, is read again."""
    file = folder / "agents.yaml"
    follower = FleetWatcher(file)
    follower.first()
    whole = file.read_text()

    def huge(path: Path) -> None:
        path.touch()
        os.truncate(path, 1 << 30)

    tracemalloc.start()
    for spoil, reason in ((huge, r"is larger than 1 MiB"), (os.mkfifo, "cannot be read: Not a regular file")):
        file.unlink()
        spoil(file)
        with pytest.raises(Refused, match=rf"agents\.yaml: {reason}"):
            settled(follower)
        file.unlink()
        file.write_text(whole)
        assert names(settled(follower)) == ["harper", "tech_research"]

        (replicas := folder / ".replicas.json").unlink(missing_ok=True)
        spoil(replicas)
        with pytest.raises(Refused, match=r"\.replicas\.json: must be a JSON object"):
            settled(follower)
        replicas.unlink()
        (lock := folder / "agents.lock").unlink(missing_ok=True)
        spoil(lock)
        (warning,) = settled(follower).lock_problems
        assert warning.message in ("cannot be read: larger than 8 MiB", "cannot be read: not a regular file")
        lock.unlink()
        assert settled(follower).lock_problems == ()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 << 20


def test_a_lock_of_no_use_keeps_no_registry_from_starting(folder: Path) -> None:
    (folder / "agents.lock").write_text("<<<<<<< ours")
    reading = FleetWatcher(folder / "agents.yaml").first()
    assert reading.lock is None
    (warning,) = [problem for problem in reading.warnings if problem.where.file == "agents.lock"]
    assert (warning.level, "is no lock" in warning.message) == ("warning", True)


def test_the_lock_is_followed_too(folder: Path) -> None:
    follower = FleetWatcher(folder / "agents.yaml")
    assert follower.first().lock is None
    (folder / "agents.lock").write_text('{"lock": 1, "name": "x", "version": "2.0", "agents": {}}')
    assert settled(follower).lock.version == "2.0"
    (folder / "agents.lock").write_text('{"lock": 2}')
    broken = settled(follower)
    assert (broken.lock.version, follower.ok) == ("2.0", True)
    assert "is no lock of a fleet" in str(broken.lock_problems)
    text = (folder / "agents.yaml").read_text()
    (folder / "agents.yaml").write_text(text.replace("tech_research", "tech_reading"))
    edited = settled(follower)
    assert ("tech_reading" in edited.fleet.agents, edited.lock.version) == (True, "2.0")
    (folder / "agents.lock").unlink()
    assert settled(follower).lock is None


def test_a_file_being_written_is_left_alone(folder: Path) -> None:
    """Half of a fleet file can be a valid, shorter fleet: agents would vanish for a second."""
    file = folder / "agents.yaml"
    whole = file.read_text()
    follower = FleetWatcher(file)
    follower.first()
    half = whole[: whole.index("  tech_research")].replace(", depends_on: [tech_research]", "")
    file.write_text(half)
    assert follower.poll() is None
    file.write_text(whole.replace("port: 8250", "port: 8251"))
    assert names(settled(follower)) == ["harper", "tech_research"]


def test_a_broken_file_is_refused_once_and_a_fixed_one_read(folder: Path) -> None:
    file = folder / "agents.yaml"
    whole = file.read_text()
    follower = FleetWatcher(file)
    follower.first()
    file.write_text("name: [unclosed\n")
    with pytest.raises(Refused):
        settled(follower)
    assert not follower.ok
    assert follower.poll() is None
    assert not follower.ok
    file.write_text(whole)
    assert names(settled(follower)) == ["harper", "tech_research"]
    assert follower.ok


def test_a_file_that_is_gone_is_refused(folder: Path) -> None:
    follower = FleetWatcher(folder / "agents.yaml")
    follower.first()
    (folder / "agents.yaml").unlink()
    with pytest.raises(Refused, match="no such file"):
        settled(follower)
    assert not follower.ok


def test_a_defect_of_the_reader_is_a_problem_of_the_file(folder: Path) -> None:
    """No input ends a running registry, also none that nobody has thought of."""
    readings = iter([fleet_file.load(folder / "agents.yaml"), IndexError("tuple index out of range"), Panic("x" * 999)])

    def read(_path: Path) -> fleet_file.FleetReading:
        reading = next(readings)
        if isinstance(reading, BaseException):
            raise reading
        return reading

    follower = FleetWatcher(folder / "agents.yaml", read=read)
    follower.first()
    (folder / "agents.yaml").write_text("name: other\n")
    with pytest.raises(Refused, match=r"agents\.yaml: cannot be checked: IndexError: tuple index out of range"):
        settled(follower)
    assert not follower.ok
    (folder / "agents.yaml").write_text("name: third\n")
    with pytest.raises(Refused, match=r"agents\.yaml: cannot be checked: Panic: x{500} "):
        settled(follower)
    assert not follower.ok
