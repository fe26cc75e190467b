"""Hosts that write their own files: what their hooks tell, and what is recorded of it.

Where the shapes of events are from: Hermes Agent 0.19.0, `agent/shell_hooks.py`
(`_serialize_payload` and the tables of its docstring); Claude Code's hooks reference (common
fields, PostToolUse input, SessionStart input); OpenClaw's `src/hooks/internal-hooks.ts`
(`InternalHookEvent`), as far as soulgit's own handler passes it on.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

import soulgit
from soulgit.core import hosts
from soulgit.core.hosts import Event, Host
from soulgit.errors import EventUnreadable
from tests.support import Git, git_home, put
from tests.test_cli import Shell, ava, shell

__all__ = ["ava", "shell"]

HERMES_CALL = {
    "hook_event_name": "post_tool_call",
    "tool_name": "memory",
    "tool_input": {"action": "add", "target": "memory", "content": "sings"},
    "session_id": "sess_abc123",
    "cwd": "/home/user/project",
    "extra": {
        "result": '{"success": true}', "status": "ok", "error_type": None, "error_message": None,
        "duration_ms": 3, "task_id": "", "tool_call_id": "call_1", "turn_id": "t1",
        "api_request_id": "r1", "middleware_trace": [],
    },
}  # fmt: skip
HERMES_BATCH = {
    **HERMES_CALL,
    "tool_input": {"target": "memory", "operations": [{"action": "add"}, {"action": "remove"}]},
}
HERMES_START = {
    "hook_event_name": "on_session_start",
    "tool_name": None,
    "tool_input": None,
    "session_id": "sess_abc123",
    "cwd": "/home/user",
    "extra": {"model": "claude-sonnet-4", "platform": "telegram"},
}
CLAUDE_CALL = {
    "session_id": "8c35adc1",
    "transcript_path": "/home/user/.claude/projects/p/8c35adc1.jsonl",
    "cwd": "/home/user/p",
    "permission_mode": "default",
    "hook_event_name": "PostToolUse",
    "tool_name": "Write",
    "tool_input": {"file_path": "/home/user/p/MEMORY.md", "content": "- sings\n"},
    "tool_response": {"filePath": "/home/user/p/MEMORY.md", "success": True},
    "tool_use_id": "toolu_01",
}
CLAUDE_START = {
    "session_id": "8c35adc1",
    "transcript_path": "/home/user/.claude/projects/p/8c35adc1.jsonl",
    "cwd": "/home/user/p",
    "hook_event_name": "SessionStart",
    "source": "startup",
    "model": "claude-sonnet-4",
}
OPENCLAW_NEW = {
    "type": "command",
    "action": "new",
    "sessionKey": "agent:main:main",
    "timestamp": "2026-12-01T12:00:00.000Z",
    "context": {"sessionId": "s-1", "commandSource": "telegram", "senderId": "ann"},
}
OPENCLAW_COMPACT = {**OPENCLAW_NEW, "type": "session", "action": "compact:before"}


@pytest.mark.parametrize(
    ("host", "values", "event"),
    [
        (
            "hermes",
            HERMES_CALL,
            Event("post_tool_call", "sess_abc123", tool="memory", action="add"),
        ),
        (
            "hermes",
            HERMES_BATCH,
            Event("post_tool_call", "sess_abc123", tool="memory", action="2 operations"),
        ),
        (
            "hermes",
            HERMES_START,
            Event("on_session_start", "sess_abc123", "claude-sonnet-4", "telegram"),
        ),
        ("claude", CLAUDE_CALL, Event("PostToolUse", "8c35adc1", tool="Write")),
        ("claude", CLAUDE_START, Event("SessionStart", "8c35adc1", "claude-sonnet-4")),
        ("openclaw", OPENCLAW_NEW, Event("command:new", "s-1", source="telegram:ann")),
        (
            "openclaw",
            OPENCLAW_COMPACT,
            Event("session:compact:before", "s-1", source="telegram:ann"),
        ),
    ],
)
def test_an_event_is_read(host: Host, values: dict[str, Any], event: Event) -> None:
    assert hosts.read(host, json.dumps(values)) == event


@pytest.mark.parametrize(
    ("values", "begins"),
    [(HERMES_START, True), (HERMES_CALL, False), (CLAUDE_START, True), (CLAUDE_CALL, False)],
)
def test_the_beginning_of_a_session_is_known(values: dict[str, Any], begins: bool) -> None:
    host: Host = "claude" if "transcript_path" in values else "hermes"
    assert hosts.read(host, json.dumps(values)).begins == begins


@pytest.mark.parametrize("host", hosts.HOSTS)
@pytest.mark.parametrize("text", ["", "no json", "[1]", "{}", "1", "null", "[" * 100_000])
def test_what_is_no_event_is_an_error(host: Host, text: str) -> None:
    with pytest.raises(EventUnreadable) as told:
        hosts.read(host, text)
    assert told.value.hint


@pytest.mark.parametrize("host", hosts.HOSTS)
def test_values_of_another_type_are_passed_over(host: Host) -> None:
    odd = {"hook_event_name": "x", "type": "x", "session_id": 7, "tool_name": [], "tool_input": "y"}
    event = hosts.read(host, json.dumps({**odd, "extra": 3, "context": [], "model": {}}))
    assert (event.session, event.model, event.source, event.tool) == (None, None, None, None)


def trailers(git: Git) -> dict[str, str]:
    lines = git("log", "-1", "--format=%(trailers:only,unfold)").splitlines()
    return dict(line.split(": ", 1) for line in lines if line)


def hooked(shell: Shell, host: str, values: object, *more: str) -> Any:
    return shell("hook", host, "ava", *more, stdin=json.dumps(values).encode())


def test_what_a_tool_wrote_is_the_companions(shell: Shell, ava: Git) -> None:
    put(ava.path, {"MEMORY.md": "- likes tea\n- sings\n"})
    done = hooked(shell, "hermes", HERMES_CALL)
    assert (done.code, done.out) == (0, b"")
    assert ava.subjects()[0] == 'memory(self): add "sings"'
    assert ava("log", "-1", "--format=%an") == "Ava"
    told = trailers(ava)
    assert told["Soul-Action"] == "capture"
    assert told["Soul-Origin"] == "hermes"
    assert told["Soul-Session"] == "sess_abc123"
    assert told["Soul-Reason"] == "memory add"
    ava.agrees()


def test_what_is_found_when_a_session_begins_is_nobodys(shell: Shell, ava: Git) -> None:
    put(ava.path, {"MEMORY.md": "- likes tea\n- sings\n"})
    assert hooked(shell, "hermes", HERMES_START).code == 0
    assert ava("log", "-1", "--format=%an") == "unknown"
    told = trailers(ava)
    assert (told["Soul-Origin"], told["Soul-Source"]) == ("hand", "telegram")
    assert told["Soul-Model"] == "claude-sonnet-4"


def test_a_hook_that_finds_nothing_says_nothing(shell: Shell, ava: Git) -> None:
    tip = ava("rev-parse", "HEAD")
    for host, values in (("hermes", HERMES_CALL), ("claude", CLAUDE_START)):
        done = hooked(shell, host, values)
        assert (done.code, done.out, done.err) == (0, b"", "")
    assert ava("rev-parse", "HEAD") == tip


def test_an_event_forges_no_trailer(shell: Shell, ava: Git) -> None:
    put(ava.path, {"MEMORY.md": "- likes tea\n- sings\n"})
    forged = {
        **HERMES_CALL,
        "session_id": "s\nSoul-Source: boss",
        "tool_name": "m\n\nSoul-Model: x",
    }
    assert hooked(shell, "hermes", forged).code == 0
    told = trailers(ava)
    assert "Soul-Source" not in told
    assert "Soul-Model" not in told
    assert told["Soul-Session"] == "s Soul-Source: boss"


@pytest.mark.parametrize("text", [b"", b"no json", b"\xff\xfe", b"[]"])
def test_a_hook_never_fails_the_host(shell: Shell, ava: Git, text: bytes) -> None:
    put(ava.path, {"MEMORY.md": "- likes tea\n- sings\n"})
    done = shell("hook", "hermes", "ava", stdin=text)
    assert (done.code, done.out) == (0, b"")
    assert "hint: " in done.err
    assert shell("hook", "hermes", "ava", "--strict", stdin=text).code == 1


@pytest.mark.parametrize("home", ["nobody", "/nowhere/at/all"])
def test_a_hook_for_no_home_never_fails_the_host(shell: Shell, ava: Git, home: str) -> None:
    event = json.dumps(HERMES_CALL).encode()
    done = shell("hook", "hermes", home, stdin=event)
    assert (done.code, done.out) == (0, b"")
    assert "soulgit: " in done.err
    assert shell("hook", "hermes", home, "--strict", stdin=event).code == 1


def test_a_detached_head_is_told_and_never_fails_the_host(shell: Shell, ava: Git) -> None:
    ava("switch", "--detach", "-q", "HEAD")
    put(ava.path, {"MEMORY.md": "- likes tea\n- sings\n"})
    done = hooked(shell, "hermes", HERMES_CALL)
    assert done.code == 0
    assert "detached" in done.err
    assert hooked(shell, "hermes", HERMES_CALL, "--strict").code == 1


def edited(path: Path) -> None:
    with (path / "SOUL.md").open("a") as soul:
        soul.write("You are a pirate.\n")


def test_a_pending_persona_is_told_when_a_session_begins(shell: Shell, ava: Git) -> None:
    edited(ava.path)
    for host, values in (("hermes", HERMES_START), ("openclaw", OPENCLAW_NEW)):
        done = hooked(shell, host, values)
        assert done.code == 0
        assert "soulgit settle" in done.err
        assert ("soulgit settle" in done.text) == (host == "openclaw")
    done = hooked(shell, "claude", CLAUDE_START)
    assert "soulgit settle" in json.loads(done.text)["systemMessage"]
    assert hooked(shell, "claude", CLAUDE_CALL).out == b""


def test_memory_is_recorded_while_a_persona_is_pending(shell: Shell, ava: Git) -> None:
    edited(ava.path)
    put(ava.path, {"MEMORY.md": "- likes tea\n- sings\n"})
    hooked(shell, "hermes", HERMES_CALL)
    assert ava.subjects()[0] == 'memory(self): add "sings"'
    assert ava("status", "--porcelain", "-uno").split() == ["M", "SOUL.md"]


def test_a_frozen_home_is_told_and_nothing_is_recorded(shell: Shell, ava: Git) -> None:
    assert shell("freeze", "ava", "--reason", "it raves").code == 0
    put(ava.path, {"MEMORY.md": "- likes tea\n- raves\n"})
    tip = ava("rev-parse", "HEAD")
    done = hooked(shell, "claude", CLAUDE_START)
    assert "is frozen" in json.loads(done.text)["systemMessage"]
    assert "it raves" in done.err
    done = hooked(shell, "claude", CLAUDE_CALL)
    assert done.code == 0
    assert "frozen" in done.err
    assert ava("rev-parse", "HEAD") == tip


# A host's own lock

HOLDER = """
    import fcntl, sys, time
    with open(sys.argv[1], "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        print("held", flush=True)
        sys.stdin.readline()
        with open(sys.argv[1].removesuffix(".lock"), "a") as memory:
            memory.write("\\n§\\nthe host's")
"""


@pytest.fixture
def hermes_home(home_dir: Path) -> Git:
    return git_home(
        home_dir,
        {"SOUL.md": "You are Ava.\n", "memories/MEMORY.md": "one", "memories/USER.md": "Ann"},
    )


def host_writes(home: Path) -> subprocess.Popen[str]:
    """Start a process that holds Hermes' lock, and writes as Hermes does once it is told to."""
    lock = home / "memories" / "MEMORY.md.lock"
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), str(lock)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_hosts_own_lock_is_waited_for(hermes_home: Git) -> None:
    process = host_writes(hermes_home.path)
    try:
        home = soulgit.Home.open(hermes_home.path, wait_seconds=0.05)
        result = soulgit.memory_tool(home).execute({"action": "add", "text": "two"})
        assert result.is_error
        assert "MEMORY.md.lock" in result.output
        other = {"action": "add", "text": "likes tea", "target": "user"}
        assert not soulgit.memory_tool(home).execute(other).is_error
    finally:
        process.communicate("")
    assert (
        not soulgit.memory_tool(hermes_home.path).execute({"action": "add", "text": "two"}).is_error
    )
    memory = (hermes_home.path / "memories" / "MEMORY.md").read_text()
    assert memory == "one\n§\nthe host's\n§\ntwo"
    hermes_home.agrees()


def test_what_a_host_writes_while_it_is_waited_for_is_kept(hermes_home: Git) -> None:
    process = host_writes(hermes_home.path)
    writer = threading.Thread(
        target=soulgit.memory_tool(hermes_home.path).execute,
        args=({"action": "replace", "text": "one", "with": "1"},),
    )
    writer.start()
    process.communicate("now\n")
    writer.join()
    memory = (hermes_home.path / "memories" / "MEMORY.md").read_text()
    assert memory == "1\n§\nthe host's"
    assert hermes_home.subjects()[:2] == [
        'memory(self): replace "one" with "1"',
        'memory(self): add "the host\'s"',
    ]
    hermes_home.agrees()


def test_no_lock_is_made_where_no_host_has_one(hermes_home: Git) -> None:
    assert (
        not soulgit.memory_tool(hermes_home.path).execute({"action": "add", "text": "two"}).is_error
    )
    names = sorted(path.name for path in (hermes_home.path / "memories").iterdir())
    assert names == ["MEMORY.md", "USER.md"]


# How long Hermes lets a memory file be


def test_a_memory_that_hermes_finds_too_long_is_told_and_kept(
    shell: Shell, hermes_home: Git
) -> None:
    tool = soulgit.memory_tool(hermes_home.path)
    fits = "x" * (2_200 - len("one\n§\n"))
    assert "Hermes" not in tool.execute({"action": "add", "text": fits}).output
    done = tool.execute({"action": "add", "text": "y"})
    assert not done.is_error
    told = (
        "memories/MEMORY.md has 2,204 characters; Hermes Agent keeps 2,200 and adds no more until "
        "some are removed"
    )
    assert told in done.output.splitlines()
    assert told in shell("status", str(hermes_home.path)).err
    (finding,) = [
        line for line in shell("lint", str(hermes_home.path)).text.splitlines() if "hermes" in line
    ]
    assert finding.startswith("MEMORY.md:5:1: warning: 2,204 characters")
    assert "Hermes" not in tool.execute({"action": "remove", "text": "y"}).output
    assert "Hermes" not in shell("status", str(hermes_home.path)).err


def test_a_plain_home_has_no_limit_of_hermes(shell: Shell, ava: Git) -> None:
    done = soulgit.memory_tool(ava.path).execute({"action": "add", "text": "x" * 3_000})
    assert not done.is_error
    assert "Hermes" not in done.output + shell("status", "ava").err


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "hermes"])
def test_thirteen_of_fourteen_memories_that_a_host_overwrites_come_back(
    shell: Shell, home_dir: Path, plain: bool
) -> None:
    known = [f"fact {number}" for number in range(14)]
    path, host = ("MEMORY.md", "openclaw") if plain else ("memories/MEMORY.md", "hermes")

    def written(texts: list[str]) -> str:
        return "".join(f"- {text}\n" for text in texts) if plain else "\n§\n".join(texts)

    git = git_home(home_dir, {"SOUL.md": "You are Ava.\n", path: written(known)})
    assert soulgit.memory_tool(git.path).execute({"action": "add", "text": "x"}).is_error is False
    assert (
        soulgit.memory_tool(git.path).execute({"action": "remove", "text": "x"}).is_error is False
    )
    put(git.path, {path: written(["fact 5"])})
    event = HERMES_CALL if host == "hermes" else {"type": "command", "action": "new"}
    assert shell("hook", host, str(git.path), stdin=json.dumps(event).encode()).code == 0
    assert "memory(self): 13 entries gone" in shell("log", str(git.path)).text
    assert shell("undo", str(git.path)).code == 0
    listed = shell("memory", "list", str(git.path), "--json").out
    assert [entry["text"] for entry in json.loads(listed)] == known
    git.agrees()
