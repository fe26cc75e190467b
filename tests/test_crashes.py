"""Kills and faults at any instant: what was acknowledged stays, the rest is whole or absent.

Where a kill or a fault falls is said by the kernel, at a random instant or at the n-th call
of a system call, and never by the name of a function here.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import soulgit
from soulgit import forking, settling
from soulgit.core.layout import HERMES_DELIMITER
from tests.support import Git, git_home, put
from tests.test_settle import EVE, FILES, PAT, begun, trailer

slow = pytest.mark.slow

Action = dict[str, str]
State = tuple[str, str, dict[str, bytes], str]


def add(path: Path, text: str) -> soulgit.Result:
    return soulgit.memory_tool(path).execute({"action": "add", "text": text})


def add_by_a_process(path: Path, text: str) -> None:
    command = [sys.executable, "-m", "soulgit", "memory", "add", str(path), text]
    subprocess.run(command, check=True, capture_output=True)


def subject(action: Action) -> str:
    more = f' with "{action["with"]}"' if "with" in action else ""
    return f'memory(self): {action["action"]} "{action["text"]}"{more}'


def entries(home: Path) -> list[str]:
    """The memories in the file of either layout."""
    if (home / "memories" / "MEMORY.md").exists():
        return (home / "memories" / "MEMORY.md").read_text().split(HERMES_DELIMITER)
    return [line.removeprefix("- ") for line in (home / "MEMORY.md").read_text().splitlines()]


def carried_out(entries: list[str], action: Action) -> list[str]:
    """What an action makes of the memories."""
    if action["action"] == "add":
        return [*entries, action["text"]]
    place = entries.index(action["text"])
    return [*entries[:place], *filter(None, [action.get("with")]), *entries[place + 1 :]]


def state(home: Path) -> State:
    """Refs, HEAD, files and status: all that a refusal must leave as it was."""
    git = Git(home)
    files = {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(home).parts
    }
    refs = git("for-each-ref", "--format=%(refname) %(objectname)")
    status = git("--no-optional-locks", "status", "--porcelain")
    return refs, git("symbolic-ref", "HEAD"), files, status


def leaves_nothing_behind(home: Path) -> None:
    git_dir = Path(home, Git(home)("rev-parse", "--git-common-dir"))
    assert [str(path) for path in git_dir.rglob("*.lock")] == []
    ours = [path.relative_to(home).parts for path in home.rglob("*soulgit*")]
    assert [parts for parts in ours if parts[0] != ".git"] == []


def is_sound(home: Path) -> None:
    leaves_nothing_behind(home)
    git = Git(home)
    scratch = Path(home, git("rev-parse", "--git-common-dir"), "soulgit", "scratch")
    assert list(scratch.glob("*")) == []
    assert git("status", "--porcelain") == ""
    assert git("fsck", "--strict", "--no-dangling") == ""


# Kills at random instants

WRITER = """
import json, sys
import soulgit
tool = soulgit.memory_tool(sys.argv[1])
print("ready", flush=True)
for action in json.loads(sys.argv[2]):
    result = tool.execute(action)
    if result.is_error:
        sys.exit(result.output)
    print("done", flush=True)
"""


def actions_of(writer: int) -> list[Action]:
    """Adds, replaces and removes of which each text occurs nowhere else."""
    actions: list[Action] = []
    for number in range(20):
        one, two = f"<{writer}.{number}.one>", f"<{writer}.{number}.two>"
        actions += [
            {"action": "add", "text": one},
            {"action": "add", "text": two},
            {"action": "replace", "text": one, "with": one.upper()},
            {"action": "remove", "text": two},
        ]
    return actions


def killed_at_random(home: Path, actions: list[Action], chance: random.Random) -> int:
    """Let a process carry out actions, kill it, and return how many it acknowledged."""
    command = [sys.executable, "-c", WRITER, str(home), json.dumps(actions)]
    lines, delay = chance.randrange(1, 7), chance.uniform(0, 0.03)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdout and writer.stderr
        for _ in range(lines):
            writer.stdout.readline()
        threading.Event().wait(delay)
        writer.kill()
        told = lines + len(writer.stdout.readlines())
        assert writer.wait() == -signal.SIGKILL, writer.stderr.read()
    return told - 1


def plain(directory: Path) -> Path:
    git_home(directory, {"MEMORY.md": "- a\n"})
    return directory


def hermes(directory: Path) -> Path:
    git_home(directory, {"memories/MEMORY.md": "a", "notes.txt": "x\n"})
    return directory


def linked(directory: Path) -> Path:
    plain(directory)
    add(directory, "of the main home")
    side = directory.with_name(directory.name + "-side")
    forking.fork(directory, side.name, PAT, keep_memories=True, directory=str(side))
    return side


@pytest.mark.parametrize(
    ("make", "kills"),
    [
        (plain, 30),
        pytest.param(plain, 300, marks=slow),
        pytest.param(hermes, 300, marks=slow),
        pytest.param(linked, 300, marks=slow),
    ],
)
def test_writers_killed_at_random_lose_nothing_acknowledged(
    home_dir: Path, make: Callable[[Path], Path], kills: int
) -> None:
    home = make(home_dir)
    git, kept, cut = Git(home), entries(home), 0
    for number in range(kills):
        seed = f"{make.__name__} {number}"
        actions, tip = actions_of(number), git("rev-parse", "HEAD")
        acknowledged = killed_at_random(home, actions, random.Random(seed))
        next_one = {"action": "add", "text": f"<{number}.next>"}
        if number % 10:
            assert not add(home, next_one["text"]).is_error
        else:
            add_by_a_process(home, next_one["text"])
        subjects = git("log", "--reverse", "--format=%s", f"{tip}..HEAD").splitlines()
        landed = len(subjects) - 1
        assert landed in (acknowledged, acknowledged + 1), seed
        done = [*actions[:landed], next_one]
        assert subjects == list(map(subject, done)), seed
        for action in done:
            kept = carried_out(kept, action)
        assert entries(home) == kept, seed
        assert git("status", "--porcelain") == "", seed
        leaves_nothing_behind(home)
        if kills > 30 or number % 10 == 0:
            assert git("fsck", "--strict", "--no-dangling") == "", seed
        cut += landed - acknowledged
    subjects = [subject for subject in git.subjects() if subject.startswith("memory")]
    assert len(subjects) == len(set(subjects))
    is_sound(home)


# Kills and faults at each system call

STRACE = shutil.which("strace") or "strace"
CALLS = "fsync,rename,link,unlink,mkdir,fchmod,write"


def may_trace() -> bool:
    command = [STRACE, "-f", "--seccomp-bpf", "-qq", "-e", f"inject={CALLS}:error=EIO", "true"]
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


needs_strace = pytest.mark.skipif(not may_trace(), reason="needs strace, and leave to trace")

ACT = """
import json, os, sys
import soulgit
result = soulgit.memory_tool(sys.argv[1]).execute(json.loads(sys.argv[2]))
os.writev(1, [json.dumps([result.is_error, result.output]).encode()])
"""


@dataclass(frozen=True)
class Traced:
    """A process of which one system call was cut off or failed, if it made so many."""

    code: int
    out: str
    was_hit: bool


def traced(fault: str, *words: str, at: Path | None = None) -> Traced:
    """Run python with a fault like `fsync:signal=SIGKILL:when=3`, in calls about `at` alone."""
    read_end, write_end = os.pipe()
    call = fault.partition(":")[0]
    command = [STRACE, "-f", "-qq", "-o", f"/dev/fd/{write_end}"]
    command += [] if "signal" in fault else ["--seccomp-bpf"]  # faster, but it kills nothing
    command += [] if at is None else ["-P", str(at)]
    command += ["-e", f"trace={call}", "-e", f"inject={fault}", sys.executable, *words]
    with open(read_end) as log, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        pass_fds=[write_end], env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    ) as process:  # fmt: skip
        os.close(write_end)
        told = log.read()
        out, err = process.communicate()
    assert "Traceback" not in err, fault
    return Traced(process.returncode, out, "(INJECTED)" in told or process.returncode < 0)


def each_fault(call: str, fault: str) -> Iterator[tuple[int, str]]:
    """Yield the first call's fault, the second's and so on; the caller ends it."""
    return ((number, f"{call}:{fault}:when={number}") for number in itertools.count(1))


@dataclass(frozen=True)
class Scene:
    """A home just before an action, and what the history says of it but the action itself."""

    name: str
    make: Callable[[Path], Path]
    action: Action = field(default_factory=lambda: {"action": "add", "text": "cut off"})
    first: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


def used(directory: Path) -> Path:
    add(plain(directory), "first")
    return directory


def used_hermes(directory: Path) -> Path:
    add(hermes(directory), "first")
    return directory


def edited_by_hand(directory: Path) -> Path:
    put(used(directory), {"MEMORY.md": "- a\n- first\n- by hand\n"})
    return directory


def with_an_unnumbered_persona(directory: Path) -> Path:
    git_home(directory, {"SOUL.md": "You are Ava.\n", "MEMORY.md": "- a\n"})
    return directory


def not_begun(directory: Path) -> Path:
    put(directory, {"MEMORY.md": "- a\n"})
    return directory


def on_two_file_systems(directory: Path) -> Path:
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shared.stat().st_dev == directory.parent.stat().st_dev:
        pytest.skip("needs a second file system")
    git_dir = shared / f"soulgit-test-{os.getpid()}-{directory.parent.name}-{directory.name}"
    shutil.rmtree(git_dir, ignore_errors=True)
    directory.mkdir()
    Git(directory)("init", "-q", "--separate-git-dir", str(git_dir))
    put(directory, {"MEMORY.md": "- a\n"})
    add(directory, "first")
    return directory


@pytest.fixture
def no_shared_memory_left() -> Iterator[None]:
    yield
    for path in Path("/dev/shm").glob(f"soulgit-test-{os.getpid()}-*"):
        shutil.rmtree(path)


PLAIN = Scene("plain", used)
SCENES = [
    Scene("replace", used, {"action": "replace", "text": "first", "with": "cut off"}),
    Scene("remove", used, {"action": "remove", "text": "first"}),
    Scene("hermes", used_hermes),
    Scene("linked", linked),
    Scene("by hand", edited_by_hand, first=('memory(self): add "by hand"',)),
    Scene("first persona", with_an_unnumbered_persona),
    Scene("first write", not_begun, first=("capture: added MEMORY.md",)),
    Scene("two file systems", on_two_file_systems),
]


def in_each_scene(quick: list[str], thorough: list[str]) -> pytest.MarkDecorator:
    cases = [pytest.param(PLAIN, call, id=f"plain-{call}") for call in quick]
    cases += [
        pytest.param(scene, call, id=f"{scene}-{call}", marks=slow)
        for scene in [PLAIN, *SCENES]
        for call in quick + thorough
        if scene is not PLAIN or call in thorough
    ]
    return pytest.mark.parametrize(("scene", "call"), cases)


def history(home: Path) -> list[str]:
    return Git(home)("log", "--reverse", "--format=%s").splitlines()


def goes_on(home: Path, scene: Scene, before: list[str], past: list[str]) -> bool:
    """Make the next action, and return whether the one before it has landed, whole."""
    assert not add(home, "next").is_error
    next_one = {"action": "add", "text": "next"}
    has_landed = subject(scene.action) in history(home)
    done = [*([scene.action] if has_landed else []), next_one]
    for action in done:
        before = carried_out(before, action)
    assert entries(home) == before
    assert history(home) == [*past, *scene.first, *map(subject, done)]
    git = Git(home)
    numbered = git("for-each-ref", "--format=%(refname:short)", "refs/heads/persona")
    assert numbered == "persona/1"
    assert git("merge-base", numbered, "HEAD") == git("rev-parse", numbered)
    is_sound(home)
    return has_landed


def past_of(home: Path) -> list[str]:
    return history(home) if (home / ".git").exists() else []


@needs_strace
@pytest.mark.usefixtures("no_shared_memory_left")
@in_each_scene(["fsync", "rename"], ["link", "unlink", "mkdir", "fchmod", "write"])
def test_an_action_killed_at_any_call_is_whole_or_absent(
    tmp_path: Path, scene: Scene, call: str
) -> None:
    for number, fault in each_fault(call, "signal=SIGKILL"):
        home = scene.make(tmp_path / str(number))
        before, past = entries(home), past_of(home)
        done = traced(fault, "-c", ACT, str(home), json.dumps(scene.action))
        has_landed = goes_on(home, scene, before, past)
        if not done.was_hit:
            assert json.loads(done.out)[0] is False
            assert has_landed
            break
        assert (done.code, done.out) == (-signal.SIGKILL, "")
    assert number > 1, f"the action makes no {call}"


@needs_strace
@pytest.mark.usefixtures("no_shared_memory_left")
@in_each_scene(
    ["fsync=EIO", "write=EIO", "rename=EIO", "link=ENOSPC"],
    ["write=ENOSPC", "mkdir=ENOSPC", "fchmod=EIO"],
)
def test_a_fault_at_any_call_is_a_refusal_or_does_no_harm(
    tmp_path: Path, scene: Scene, call: str
) -> None:
    name, _, error = call.partition("=")
    for number, fault in each_fault(name, f"error={error}"):
        home = scene.make(tmp_path / str(number))
        before, past = entries(home), past_of(home)
        was = state(home) if past else None
        done = traced(fault, "-c", ACT, str(home), json.dumps(scene.action))
        assert done.code == 0, fault
        is_error, told = json.loads(done.out)
        if is_error and was:
            assert state(home) == was, (fault, told)
        has_landed = goes_on(home, scene, before, past)
        assert has_landed != is_error, (fault, told)
        if not done.was_hit:
            break
    assert has_landed
    assert number > 1, f"the action makes no {name}"


@needs_strace
def test_a_lock_that_git_takes_at_the_last_moment_is_waited_for(home_dir: Path) -> None:
    used(home_dir)
    lock = home_dir / ".git" / "refs" / "heads" / "main.lock"
    words = ["-c", ACT, str(home_dir), json.dumps(PLAIN.action)]
    done = traced("openat:error=EEXIST:when=1", *words, at=lock)
    assert done.was_hit
    assert json.loads(done.out)[0] is False, done.out
    is_sound(home_dir)


def as_it_stands(home: Path) -> tuple[dict[str, str], str, dict[str, bytes]]:
    """The trees of the refs, HEAD and the files, which two runs of one decision share."""
    git = Git(home)
    refs = git("for-each-ref", "--format=%(refname) %(tree)").splitlines()
    return dict(line.split(" ") for line in refs), *state(home)[1:3]


DECISIONS = [["--continue"], ["--fork", "eve"], ["--discard"]]


@slow
@needs_strace
@pytest.mark.parametrize("call", ["fsync", "rename", "link", "unlink"])
@pytest.mark.parametrize("decision", DECISIONS, ids=lambda words: words[0][2:])
def test_a_decision_killed_at_any_call_is_whole_or_absent(
    home_dir: Path, decision: list[str], call: str
) -> None:
    begun(home_dir, FILES)
    add(home_dir, "later")
    put(home_dir, {"SOUL.md": EVE})
    words = ["-m", "soulgit", "settle"]
    whole = copied(home_dir, "whole")
    subprocess.run([sys.executable, *words, str(whole), *decision], check=True, capture_output=True)
    is_sound(whole)
    for number, fault in each_fault(call, "signal=SIGKILL"):
        home = copied(home_dir, str(number))
        before = state(home)
        done = traced(fault, *words, str(home), *decision)
        answer = next_command(home, number)
        git = Git(home)
        if settling.is_pending(home):
            assert done.was_hit
            assert state(home) == before
            assert git("status", "--porcelain") == " M SOUL.md"
            leaves_nothing_behind(home)
            assert answer is None or answer.is_error
            subprocess.run([sys.executable, *words, str(home), *decision], check=True,
                capture_output=True)  # fmt: skip
        elif answer is not None and not answer.is_error:
            git("reset", "-q", "--hard", "HEAD~1")
        assert as_it_stands(home) == as_it_stands(whole)
        assert trailer(git, "Persona") == trailer(Git(whole), "Persona")
        assert not add(home, "after").is_error
        is_sound(home)
        if not done.was_hit:
            break
    assert number > 1, f"the decision makes no {call}"


def copied(home: Path, name: str) -> Path:
    return shutil.copytree(home, home.with_name(name), symlinks=True)


def next_command(home: Path, number: int) -> soulgit.Result | None:
    """An add after every second kill, `soulgit status` after the others."""
    if number % 2:
        return add(home, "next")
    command = [sys.executable, "-m", "soulgit", "status", str(home)]
    subprocess.run(command, check=True, capture_output=True)
    return None


# Permissions, deleted directories and full disks

STEPWISE = """
import json, sys
import soulgit
tool = soulgit.memory_tool(sys.argv[1])
for line in sys.stdin:
    result = tool.execute({"action": "add", "text": line.strip()})
    print(json.dumps([result.is_error, result.output]), flush=True)
"""
BOUND = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
"""What makes root obey permissions like everybody else."""


class Writer:
    """A process that adds one memory after another, as it is told."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, text: str) -> tuple[bool, str]:
        assert self._process.stdin and self._process.stdout
        print(text, file=self._process.stdin, flush=True)
        is_error, output = json.loads(self._process.stdout.readline())
        return is_error, output


@contextlib.contextmanager
def running(home: Path) -> Iterator[Writer]:
    command = [*(BOUND if os.geteuid() == 0 else []), sys.executable, "-c", STEPWISE, str(home)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        yield Writer(process)
        _, err = process.communicate()
    assert (process.returncode, err) == (0, "")


@contextlib.contextmanager
def unwritable(directory: Path, *, whole: bool) -> Iterator[None]:
    """Take the right to write to a directory, and to all below it, away for a while."""
    paths = [directory, *(directory.rglob("*") if whole else ())]
    modes = {path: path.stat().st_mode for path in paths}
    try:
        for path, mode in modes.items():
            path.chmod(mode & ~0o222)
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


needs_permissions = pytest.mark.skipif(
    os.geteuid() == 0
    and (not shutil.which(BOUND[0]) or subprocess.run([*BOUND, "true"], check=False).returncode),
    reason="no permission binds root here",
)
SHUT = [
    ("", False),
    (".git", False),
    (".git", True),
    (".git/objects", True),
    (".git/refs/heads", False),
    (".git/refs/heads", True),
    (".git/logs", True),
    (".git/soulgit", True),
]


@needs_permissions
def test_a_permission_that_is_lost_half_way_changes_nothing(home_dir: Path) -> None:
    used(home_dir)
    with running(home_dir) as writer:
        for number, (place, whole) in enumerate(SHUT):
            assert not writer(f"before {number}")[0]
            was = state(home_dir)
            with unwritable(home_dir / place, whole=whole):
                is_error, told = writer(f"shut {number}")
                assert state(home_dir) == was, (place, told)
            assert is_error, (place, told)
            assert not writer(f"after {number}")[0]
            assert f"shut {number}" not in entries(home_dir)
            is_sound(home_dir)


@needs_permissions
@pytest.mark.parametrize(("place", "whole"), SHUT)
def test_a_home_that_was_never_writable_is_refused(home_dir: Path, place: str, whole: bool) -> None:
    used(home_dir)
    was = state(home_dir)
    with unwritable(home_dir / place, whole=whole), running(home_dir) as writer:
        assert writer("shut")[0]
        assert writer("shut")[0]
        assert state(home_dir) == was
    assert not add(home_dir, "next").is_error
    is_sound(home_dir)


def test_a_git_directory_deleted_under_a_tool_takes_no_memory_along(home_dir: Path) -> None:
    used(home_dir)
    with running(home_dir) as writer:
        assert not writer("second")[0]
        shutil.rmtree(home_dir / ".git")
        is_error, _ = writer("third")
        assert not writer("fourth")[0]
    third = [] if is_error else ["third"]
    assert entries(home_dir) == ["a", "first", "second", *third, "fourth"]
    is_sound(home_dir)


def test_a_memory_directory_deleted_under_a_tool_is_not_moved(home_dir: Path) -> None:
    used_hermes(home_dir)
    with running(home_dir) as writer:
        assert not writer("second")[0]
        shutil.rmtree(home_dir / "memories")
        is_error, _ = writer("third")
        assert not writer("fourth")[0]
    third = [] if is_error else ["third"]
    assert sorted(path.name for path in home_dir.iterdir()) == [".git", "memories", "notes.txt"]
    assert entries(home_dir) == [*third, "fourth"]
    is_sound(home_dir)


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[None]:
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs a file system of its own")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("full", ["home", "git"])
def test_a_disk_that_is_full_for_one_half_changes_nothing(tmp_path: Path, full: str) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk):
        home, git_dir = (disk / "ava", tmp_path / "git")
        if full == "git":
            home, git_dir = tmp_path / "ava", disk / "git"
        home.mkdir()
        Git(home)("init", "-q", "--separate-git-dir", str(git_dir))
        put(home, {"MEMORY.md": "- a\n"})
        assert not add(home, "first").is_error
        refused = 0
        for room in itertools.count():
            was = state(home)
            filled(disk / "filler", room)
            text = f"{room} " + random.Random(room).randbytes(6000).hex()
            result = add(home, text)
            if not result.is_error:
                break
            refused += 1
            assert state(home) == was, result.output
            leaves_nothing_behind(home)
        assert refused > 1
        (disk / "filler").unlink()
        assert not add(home, "after").is_error
        assert entries(home) == ["a", "first", text, "after"]
        is_sound(home)


def filled(filler: Path, pages: int) -> None:
    """Fill the rest of a disk up to some pages."""
    with filler.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        file.truncate(max(0, file.tell() - pages * 4096))
