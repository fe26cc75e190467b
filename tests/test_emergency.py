"""The emergency stop: freeze, thaw, and the doctor token that freezes by a message."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest

import soulgit
from soulgit import Home, capturing, compose_soul, homes, memory, souls
from soulgit.adoption import Hand
from soulgit.core.actor import Identity
from soulgit.errors import HomeFrozen
from tests.support import Git, fixed_clock, git_home, put
from tests.test_cli import Done, Shell
from tests.test_lint import HEAD, SECTIONS

PAT = Identity("Pat", "pat@example.org")
SOUL = HEAD + SECTIONS
BASE = {"SOUL.md": SOUL, "MEMORY.md": "- likes tea\n- was born in May <!-- seared -->\n"}
PLAIN_TOKEN = "correct horse battery"
WITH_PLAIN_TOKEN = f'+++\nid = "1"\nname = "Ava"\ndoctor_token = "{PLAIN_TOKEN}"  # mine\n+++\nHi\n'


def opened(path: Path) -> Home:
    return Home.open(path, clock=fixed_clock, durable=False)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def ava(shell: Shell, home_dir: Path) -> Git:
    """A home that soulgit has begun, with two memories, one of them seared."""
    git = git_home(home_dir, BASE)
    assert shell("init", str(home_dir)).code == 0
    return git


def heads(git: Git) -> str:
    """All branches and tags and where they are."""
    return git("for-each-ref", "refs/heads", "refs/tags", "--format=%(refname) %(objectname)")


def on_disk(git: Git) -> dict[str, bytes]:
    found = [path for path in git.path.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path): path.read_bytes() for path in found}


def add(path: Path | Home, text: str = "x") -> soulgit.Result:
    return soulgit.memory_tool(path).execute({"action": "add", "text": text})


# The freeze


def test_a_freeze_is_a_ref_that_says_who_when_and_why(ava: Git) -> None:
    assert opened(ava.path).freeze(PAT, "it is confused")
    told = ava("log", "-1", "--format=%an <%ae> %at%n%B", "refs/soulgit/frozen")
    assert told.startswith("Pat <pat@example.org> 1800000000\n")
    assert "it is confused" in told
    frozen = homes.status(opened(ava.path)).frozen
    assert frozen is not None
    assert (frozen.by, frozen.time, frozen.reason) == (PAT, fixed_clock(), "it is confused")


def test_the_first_freeze_stands_and_a_thaw_ends_it(ava: Git) -> None:
    before = heads(ava)
    assert opened(ava.path).freeze(PAT, "first")
    assert not opened(ava.path).freeze(PAT, "second")
    frozen = homes.status(opened(ava.path)).frozen
    assert frozen is not None
    assert frozen.reason == "first"
    assert opened(ava.path).thaw(PAT, "all is well")
    assert not opened(ava.path).thaw(PAT)
    assert homes.status(opened(ava.path)).frozen is None
    assert heads(ava) == before
    assert not add(ava.path).is_error


def test_who_froze_and_thawed_when_and_why_is_kept(ava: Git) -> None:
    opened(ava.path).freeze(PAT, "it is confused")
    opened(ava.path).thaw(Identity("Kim", "kim@example.org"), "it is well")
    reachable = ava("log", "--glob=refs/soulgit", "--format=%an %B")
    for told in ("Pat ", "it is confused", "Kim ", "it is well"):
        assert told in reachable


def on_another_branch(git: Git) -> Path:
    git("switch", "-q", "-c", "other")
    return git.path


def in_a_linked_home(git: Git) -> Path:
    side = git.path.parent / "side"
    git("worktree", "add", "-q", "-b", "side", str(side))
    return side


WRITES: dict[str, Callable[[Home], object]] = {
    "add": lambda home: memory.add(home, "x"),
    "replace": lambda home: memory.replace(home, "tea", "mate"),
    "remove": lambda home: memory.remove(home, "likes tea"),
    "capture": lambda home: capturing.capture(home, Hand()),
    "sear": lambda home: memory.sear(home, "likes tea", PAT),
    "unsear": lambda home: memory.unsear(home, "was born in May", PAT),
    "traits": lambda home: souls.set_traits(home, {"drift": 0.1}, PAT),
    "token": lambda home: souls.set_token(home, "x", PAT),
    "edit": lambda home: souls.edit(home, "TOOLS.md", b"by hand\n", b"x\n", PAT),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("where", [lambda git: git.path, on_another_branch, in_a_linked_home],
                         ids=["here", "another branch", "linked home"])  # fmt: skip
def test_nothing_writes_memory_while_frozen(
    ava: Git, write: str, where: Callable[[Git], Path]
) -> None:
    place = where(ava)
    put(place, {"TOOLS.md": "by hand\n"})
    opened(ava.path).freeze(PAT)
    before = heads(ava), on_disk(ava), on_disk(Git(place))
    with pytest.raises(HomeFrozen) as caught:
        WRITES[write](opened(place))
    assert "soulgit thaw" in caught.value.hint
    assert (heads(ava), on_disk(ava), on_disk(Git(place))) == before


def test_the_tool_answers_a_model_that_memory_is_frozen(ava: Git) -> None:
    tool = soulgit.memory_tool(opened(ava.path))
    opened(ava.path).freeze(PAT, "it is confused")
    result = tool.execute({"action": "add", "text": "x"})
    assert result.is_error
    assert "frozen" in result.output
    assert "it is confused" in result.output


@pytest.mark.parametrize(
    "words",
    [
        ("memory", "add", "HOME", "x"),
        ("capture", "HOME"),
        ("sear", "HOME", "likes tea"),
        ("unsear", "HOME", "was born in May"),
        ("traits", "HOME", "drift=0.1"),
        ("edit", "HOME", "--from", "new.md"),
        ("token", "HOME"),
    ],
    ids=lambda words: words[0],
)
def test_commands_that_write_exit_3_while_frozen(
    shell: Shell, ava: Git, words: tuple[str, ...]
) -> None:
    put(shell.directory, {"new.md": SOUL + "More.\n"})
    put(ava.path, {"TOOLS.md": "by hand\n"})
    assert shell("freeze", str(ava.path), "--reason", "it is confused").code == 0
    before = heads(ava), on_disk(ava)
    err = shell.refused(*(str(ava.path) if word == "HOME" else word for word in words), code=3)
    assert "it is confused" in err
    assert (heads(ava), on_disk(ava)) == before


def test_init_writes_nothing_into_a_frozen_home(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, {"SOUL.md": WITH_PLAIN_TOKEN})
    opened(home_dir).freeze(PAT)
    before = heads(git), on_disk(git)
    shell.refused("init", str(home_dir), "--keep-token", code=3)
    shell("init", str(home_dir), "--hash-token")
    assert (heads(git), on_disk(git)) == before


def test_reading_and_composing_go_on(shell: Shell, ava: Git) -> None:
    before = compose_soul(ava.path).text
    opened(ava.path).freeze(PAT)
    assert compose_soul(ava.path).text == before
    for verb in ("compose", "persona", "traits", "lint", "status", "log", "diff"):
        assert shell(verb, str(ava.path)).code == 0
    assert shell("memory", "list", str(ava.path)).code == 0
    assert shell("init", str(ava.path)).code == 0


def test_status_tells_of_the_freeze_and_of_what_changed_meanwhile(shell: Shell, ava: Git) -> None:
    assert shell("freeze", str(ava.path), "--reason", "it is confused").code == 0
    put(ava.path, {"TOOLS.md": "A hammer.\n"})
    told = shell("status", str(ava.path)).text
    assert "it is confused" in told
    assert "added TOOLS.md" in told
    value = json.loads(shell("status", str(ava.path), "--json").text)
    assert value["frozen"]["reason"] == "it is confused"
    assert shell("thaw", str(ava.path)).code == 0
    assert shell("capture", str(ava.path)).code == 0
    assert ava.subjects()[0] == "capture: added TOOLS.md"
    ava.agrees()


# It waits for nobody, and survives


def test_a_freeze_does_not_wait_for_a_writer_in_another_process(ava: Git) -> None:
    assert not add(opened(ava.path)).is_error
    tip = ava("rev-parse", "HEAD")
    put(ava.path / ".git", {"index.lock": "", "HEAD.lock": "", "refs/heads/main.lock": f"{tip}\n"})
    with filelock.FileLock(ava.path / ".git" / "soulgit" / "lock"):
        source = "import sys, soulgit; from soulgit.core.actor import UNKNOWN\n"
        source += "print(soulgit.Home.open(sys.argv[1], wait_seconds=0).freeze(UNKNOWN))"
        done = subprocess.run(
            [sys.executable, "-c", source, str(ava.path)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_freeze_does_not_wait_for_a_thread_that_writes_with_the_same_home(ava: Git) -> None:
    home = opened(ava.path)
    is_held, may_end, is_frozen = (threading.Event() for _ in range(3))

    def write() -> None:
        with home.writing():
            is_held.set()
            may_end.wait(timeout=20)

    def freeze() -> None:
        home.freeze(PAT)
        is_frozen.set()

    threads = [threading.Thread(target=target) for target in (write, freeze)]
    threads[0].start()
    assert is_held.wait(timeout=20)
    threads[1].start()
    in_time = is_frozen.wait(timeout=5)
    may_end.set()
    for thread in threads:
        thread.join(timeout=20)
    assert in_time


def test_a_freeze_stands_though_its_process_is_killed_right_after(ava: Git) -> None:
    source = """
        import os, signal, sys
        from soulgit import Home
        from soulgit.core.actor import UNKNOWN
        from soulgit.git import Repository
        make = Repository.create_ref
        def create_and_die(*arguments):
            make(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)
        Repository.create_ref = create_and_die
        Home.open(sys.argv[1]).freeze(UNKNOWN, "cut off")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source), str(ava.path)], check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert "cut off" in add(opened(ava.path)).output
    assert opened(ava.path).thaw(PAT)
    assert opened(ava.path).freeze(PAT)


def test_a_lock_beside_the_history_of_freezes_does_not_stop_a_freeze(
    shell: Shell, ava: Git
) -> None:
    put(ava.path / ".git" / "refs" / "soulgit", {"freezes.lock": ""})
    shell("freeze", str(ava.path))
    assert add(opened(ava.path)).is_error


def test_a_dead_writers_work_waits_for_the_thaw(shell: Shell, ava: Git) -> None:
    source = """
        import os, signal, sys
        import soulgit
        from soulgit.git.locking import RefLocks
        RefLocks.move = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
        soulgit.memory_tool(sys.argv[1]).execute({"action": "add", "text": "cut off"})
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(source), str(ava.path)], check=False)
    opened(ava.path).freeze(PAT)
    before = heads(ava)
    assert shell("compose", str(ava.path)).code == 0
    assert heads(ava) == before
    opened(ava.path).thaw(PAT)
    assert not add(opened(ava.path), "next").is_error
    assert (ava.path / "MEMORY.md").read_text().endswith("- cut off\n- next\n")
    ava.agrees()


def test_a_process_that_writes_stops_at_its_next_write(ava: Git) -> None:
    source = """
        import sys, soulgit
        tool = soulgit.memory_tool(soulgit.Home.open(sys.argv[1], durable=False))
        for number in range(100_000):
            result = tool.execute({"action": "add", "text": f"entry {number}"})
            print(result.output.splitlines()[0], flush=True)
            if result.is_error:
                break
    """
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(source), str(ava.path)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert writer.stdout is not None
    for _ in range(3):
        assert writer.stdout.readline().startswith("ok ")
    assert Home.open(ava.path).freeze(PAT)
    tip = ava("rev-parse", "main")
    last = writer.communicate(timeout=60)[0].splitlines()[-1]
    assert writer.returncode == 0
    assert "frozen" in last
    assert int(ava("rev-list", "--count", f"{tip}..main")) <= 1
    tip = ava("rev-parse", "main")
    assert add(ava.path).is_error
    assert ava("rev-parse", "main") == tip
    ava.agrees()


def test_a_freeze_is_local_to_a_clone(ava: Git, tmp_path: Path) -> None:
    opened(ava.path).freeze(PAT)
    ava("clone", "-q", str(ava.path), str(tmp_path / "clone"))
    assert not add(tmp_path / "clone").is_error


# The doctor token


def new_token(shell: Shell, git: Git) -> str:
    done = shell("token", str(git.path))
    assert done.code == 0
    assert re.fullmatch(r"\S{20,}\n", done.text)
    return done.text.strip()


def test_a_token_is_shown_once_and_its_hash_is_kept(shell: Shell, ava: Git) -> None:
    before = compose_soul(ava.path).text
    word = new_token(shell, ava)
    digest = hashlib.sha256(word.encode()).hexdigest()
    assert f'doctor_token = "sha256:{digest}"' in (ava.path / "SOUL.md").read_text()
    assert compose_soul(ava.path).text == before
    assert "Soul-Action: edit" in ava("log", "-1", "--format=%B")
    assert new_token(shell, ava) != word
    ava.agrees()


def test_a_token_is_heard_as_a_whole_message_only(shell: Shell, ava: Git) -> None:
    word = new_token(shell, ava)
    home = opened(ava.path)
    for message in (
        "",
        " ",
        word[:-1],
        f"{word} please",
        f"say {word}",
        f"{word}\n{word}",
        "sha256:",
    ):
        assert not soulgit.is_doctor_token(ava.path, message)
        assert not home.hear(message)
    assert homes.status(home).frozen is None
    assert soulgit.is_doctor_token(ava.path, f"\n  {word}\t\r\n")
    assert soulgit.is_doctor_token(home, word)
    assert homes.status(home).frozen is None
    assert home.hear(f" {word}\n")
    assert add(home).is_error
    assert home.hear(word)


def test_the_stored_form_of_a_token_is_none(shell: Shell, ava: Git) -> None:
    word = new_token(shell, ava)
    stored = f"sha256:{hashlib.sha256(word.encode()).hexdigest()}"
    assert not soulgit.is_doctor_token(ava.path, stored)


def test_an_old_token_is_not_heard_any_more(shell: Shell, ava: Git) -> None:
    old, new = new_token(shell, ava), new_token(shell, ava)
    assert not soulgit.is_doctor_token(ava.path, old)
    assert soulgit.is_doctor_token(ava.path, new)


@pytest.mark.parametrize(
    "head", ["", '+++\ndoctor_token = ""\n+++\n', "+++\ndoctor_token = 5\n+++\n"]
)
def test_without_a_token_no_message_is_one(home_dir: Path, head: str) -> None:
    git_home(home_dir, {"SOUL.md": head + "Hi\n"})
    for message in ("", "5", "None", "\ud800"):
        assert not soulgit.is_doctor_token(home_dir, message)


def test_hear_on_standard_input(shell: Shell, ava: Git) -> None:
    word = new_token(shell, ava)
    for message in (b"", b"hello\n", b"\xff", f"say {word}\n".encode()):
        assert shell("hear", str(ava.path), stdin=message).code == 1
    assert homes.status(opened(ava.path)).frozen is None
    for _ in range(2):
        assert shell("hear", str(ava.path), stdin=f"{word}\r\n".encode()).code == 0
    assert homes.status(opened(ava.path)).frozen is not None


def test_a_token_is_heard_while_a_writer_is_at_work(shell: Shell, ava: Git) -> None:
    word = new_token(shell, ava)
    with opened(ava.path).writing():
        assert shell("hear", str(ava.path), stdin=word.encode()).code == 0
    assert add(ava.path).is_error


def test_a_token_is_heard_though_the_disk_has_no_soul_file(shell: Shell, ava: Git) -> None:
    word = new_token(shell, ava)
    (ava.path / "SOUL.md").unlink()
    assert shell("hear", str(ava.path), stdin=word.encode()).code == 0


def test_a_token_is_heard_though_an_edit_of_the_soul_file_is_half_done(
    shell: Shell, ava: Git
) -> None:
    word = new_token(shell, ava)
    put(ava.path, {"SOUL.md": "+++\nname = \n" + (ava.path / "SOUL.md").read_text()[4:]})
    assert shell("hear", str(ava.path), stdin=word.encode()).code == 0


# A token in a file that is adopted


@pytest.mark.parametrize("has_history", [False, True])
def test_init_refuses_a_plain_token_until_it_is_told_what_becomes_of_it(
    shell: Shell, home_dir: Path, has_history: bool
) -> None:
    if has_history:
        git_home(home_dir, {"TOOLS.md": "x\n"})
    put(home_dir, {"SOUL.md": WITH_PLAIN_TOKEN})
    err = shell.refused("init", str(home_dir))
    assert "--hash-token" in err
    assert "--keep-token" in err
    assert PLAIN_TOKEN not in err
    assert (home_dir / "SOUL.md").read_text() == WITH_PLAIN_TOKEN
    assert (home_dir / ".git").exists() == has_history


def test_a_plain_token_is_hashed_in_its_place(shell: Shell, home_dir: Path) -> None:
    put(home_dir, {"SOUL.md": WITH_PLAIN_TOKEN, "MEMORY.md": "- a\n"})
    assert shell("init", str(home_dir), "--hash-token").code == 0
    stored = f"sha256:{hashlib.sha256(PLAIN_TOKEN.encode()).hexdigest()}"
    after = (home_dir / "SOUL.md").read_text()
    assert after == WITH_PLAIN_TOKEN.replace(PLAIN_TOKEN, stored)
    assert (home_dir / "MEMORY.md").read_text() == "- a\n"
    assert PLAIN_TOKEN.encode() not in everything(Git(home_dir))
    assert opened(home_dir).hear(PLAIN_TOKEN)
    Git(home_dir).agrees()


def test_a_plain_token_is_kept_where_it_shall_be(shell: Shell, home_dir: Path) -> None:
    put(home_dir, {"SOUL.md": WITH_PLAIN_TOKEN})
    assert shell("init", str(home_dir), "--keep-token").code == 0
    assert (home_dir / "SOUL.md").read_text() == WITH_PLAIN_TOKEN
    assert not add(home_dir).is_error
    outputs = [
        shell(verb, str(home_dir)) for verb in ("compose", "lint", "doctor", "status", "log")
    ]
    assert not any(PLAIN_TOKEN in done.text + done.err for done in outputs)
    assert "plain-token" in outputs[1].text
    assert opened(home_dir).hear(PLAIN_TOKEN)


@pytest.mark.parametrize("flag", ["--hash-token", "--keep-token"])
def test_a_soul_to_begin_with_may_hold_a_token(shell: Shell, flag: str) -> None:
    put(shell.directory, {"soul.md": WITH_PLAIN_TOKEN})
    shell.refused("init", "bo", "--from", "soul.md")
    assert not (shell.directory / "root" / "bo").exists()
    assert shell("init", "bo", "--from", "soul.md", flag).code == 0
    home = shell.directory / "root" / "bo"
    assert (PLAIN_TOKEN in (home / "SOUL.md").read_text()) == (flag == "--keep-token")
    assert soulgit.is_doctor_token(home, PLAIN_TOKEN)


def test_a_plain_token_that_was_kept_is_hashed_later_and_init_says_so(
    shell: Shell, home_dir: Path
) -> None:
    put(home_dir, {"SOUL.md": WITH_PLAIN_TOKEN})
    assert shell("init", str(home_dir), "--keep-token").code == 0
    done = shell("init", str(home_dir), "--hash-token")
    assert done.code == 0
    assert PLAIN_TOKEN not in (home_dir / "SOUL.md").read_text()
    assert "nothing was changed" not in done.err


def test_a_token_typed_into_the_soul_file_is_not_committed(shell: Shell, ava: Git) -> None:
    before = heads(ava)
    put(
        ava.path, {"SOUL.md": SOUL.replace('id = "1"', f'id = "1"\ndoctor_token = "{PLAIN_TOKEN}"')}
    )
    result = add(ava.path)
    assert result.is_error
    assert PLAIN_TOKEN not in result.output
    assert PLAIN_TOKEN not in shell.refused("capture", str(ava.path))
    assert heads(ava) == before
    assert PLAIN_TOKEN.encode() not in everything(ava)


# Nowhere but where it was shown


def everything(git: Git) -> bytes:
    """All objects of a repository, whether a ref leads to them or not, and all its files."""
    objects = git.bytes("cat-file", "--batch-all-objects", "--batch")
    files = [path for path in (git.path / ".git").rglob("*") if path.is_file()]
    return objects + b"".join(path.read_bytes() for path in files)


JSON_COMMANDS = (
    "compose", "persona", "traits", "lint", "memory list", "status", "log", "diff", "doctor",
)  # fmt: skip


def test_the_token_is_nowhere_but_where_it_was_shown(shell: Shell, ava: Git) -> None:
    home = str(ava.path)
    word = new_token(shell, ava)
    told: list[Done] = []

    def run(*words: str, stdin: bytes = b"") -> Done:
        told.append(shell(*words, stdin=stdin))
        return told[-1]

    results = [add(ava.path, "one"), add(ava.path, "")]
    for command in JSON_COMMANDS:
        verb, *rest = command.split()
        run(verb, *rest, home, "--json")
        run(verb, *rest, home)
    run("list", "--json")
    run("show", home, "HEAD", "--json")
    run("show", home, "HEAD~1", "--json")
    run("show", home, "HEAD~1")
    run("diff", home, "HEAD~2", "HEAD", "--json")
    run("compose", home, "--at", "HEAD", "--json")

    soul = (ava.path / "SOUL.md").read_text()
    planted = {
        "SOUL.md": f"{soul}\nThe word is {word}.\n{word}\n",
        "MEMORY.md": f"- say {word}\n- say {word}\n",
        "TOOLS.md": f"<<<<<<< {word}\n",
    }
    kept = {name: (ava.path / name).read_bytes() for name in ("SOUL.md", "MEMORY.md")}
    put(ava.path, planted)
    for command in ("lint", "doctor", "doctor --fix", "status"):
        verb, *rest = command.split()
        run(verb, home, *rest, "--json")
        run(verb, home, *rest)
    put(ava.path, kept)
    (ava.path / "TOOLS.md").unlink()
    put(shell.directory, planted)
    for name in planted:
        run("lint", f"./{name}")
        assert run("edit", home, "--file", name, "--from", name).code != 0
    plain = soul.replace("sha256:" + hashlib.sha256(word.encode()).hexdigest(), word)
    put(shell.directory, {"plain.md": plain})
    assert run("edit", home, "--from", "plain.md").code != 0
    assert run("lint", "./plain.md").code == 0

    assert run("hear", home, stdin=word.encode()).code == 0
    assert run("traits", home, "drift=0.1").code == 3
    assert run("token", home).code == 3
    run("doctor", home, "--json")
    assert run("thaw", home).code == 0
    assert run("traits", home, "mood=1").code == 2
    results.append(add(ava.path, "two"))

    raw = word.encode()
    places = {
        "output": any(raw in done.out or word in done.err for done in told),
        "results": any(word in result.output for result in results),
        "working files": any(raw in data for data in on_disk(ava).values()),
        "the git directory": raw in everything(ava),
    }
    leaks = [done for done in told if raw in done.out or word in done.err]
    assert ([place for place, holds_it in places.items() if holds_it], leaks) == ([], [])
