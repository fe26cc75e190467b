"""Whatever happened in a home, however the text was cut, joined and undone: the laws hold."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from soulgit import Home, capturing, homes, memory, restoring, settling, undoing, verification
from soulgit.adoption import Hand
from soulgit.core.redaction import MARK
from soulgit.errors import SoulgitError, TextNotFound
from soulgit.memory import Told
from soulgit.restoring import What
from soulgit.undoing import Which
from tests.support import Git, fixed_clock, git_home, put
from tests.test_redact import PAT, everything, holds, objects, opened, redact

TEXTS = [
    "swordfish", "Zoë Müller", "key 12ab-34cd", "line one of it\nline two of it", "ab cd ef gh",
    "王小明です", "dead4711", "x" * 90 + "y", "4711", "tail…cut half",
]  # fmt: skip


class Life:
    """A home in which things happen at random, most of them about one text or a part of it."""

    def __init__(self, directory: Path, text: str, chance: random.Random) -> None:
        self.text, self.chance = text, chance
        hint = "1" if "\n" in text else f'"{text}"'
        is_hermes = chance.random() < 0.3
        memories = {"memories/MEMORY.md": f"one\n§\n{self.said()}"}
        files = {
            "SOUL.md": f'+++\nname = "Ava"\nhint = {hint}\n+++\nYou are Ava {self.part()}.\n',
            **(memories if is_hermes else {"MEMORY.md": f"- one\n- {self.said()}\n"}),
        }
        self.git = git_home(directory, files)
        homes.init(str(directory), identifier="1", identify=lambda _: PAT, clock=fixed_clock)
        self.home: Home = opened(directory)

    def part(self) -> str:
        text = self.text
        at = self.chance.randrange(len(text))
        return self.chance.choice(
            [
                text, text, text, unicodedata.normalize("NFD", text), text[at:], text[: at + 1],
                text + text[at:], "tea", "a long and winding road " * 2, "é", "- x", MARK,
            ]
        )  # fmt: skip

    def said(self) -> str:
        start = "x " * self.chance.choice([0, 0, self.chance.randrange(35)])
        ends = [" ", "", " and ", " \u200e "]
        parts = [self.part() + self.chance.choice(ends) for _ in range(self.chance.randrange(1, 4))]
        return (start + "".join(parts)).strip() or "z"

    def known(self) -> str:
        return self.chance.choice(memory.list_entries(self.home)).text

    def within(self) -> str:
        known = self.known()
        start = self.chance.randrange(len(known))
        return known[start : self.chance.randrange(start, len(known)) + 1]

    def add(self) -> None:
        target = self.chance.choice(["self", "user"])
        told = Told(reason=self.said(), source=self.part(), session=self.part())
        memory.add(self.home, self.said(), target=target, told=told)  # type: ignore[arg-type]

    def replace(self) -> None:
        memory.replace(self.home, self.within(), self.said())

    def remove(self) -> None:
        memory.remove(self.home, self.chance.choice([self.known(), self.within()]))

    def undo(self) -> None:
        choice = self.chance.choice(["keep", "drop"])
        undoing.undo(self.home, Which(), PAT, choice=choice)  # type: ignore[arg-type]

    def sear(self) -> None:
        memory.sear(self.home, self.known(), PAT)

    def unsear(self) -> None:
        memory.unsear(self.home, self.known(), PAT)

    def settle(self) -> None:
        put(self.git.path, {"SOUL.md": f"You are {self.chance.random()} {self.part()}\n"})
        decision = self.chance.choice(["continue", "discard"])
        settling.decide(self.home, decision, PAT, reason=self.said())  # type: ignore[arg-type]

    def capture(self) -> None:
        put(self.git.path, {"TOOLS.md": f"{self.said()}\n", "AGENTS.md": self.part()})
        capturing.capture(self.home, Hand(PAT))

    def restore(self) -> None:
        revision = self.chance.choice(self.git("rev-list", "HEAD").splitlines())
        restoring.restore(self.home, revision, PAT, What(target="self"))

    def commit(self) -> None:
        subject, named = self.git("log", "-1", "--format=%s\n%H").split("\n")
        put(self.git.path, {f"file {self.chance.randrange(3)}": self.said()})
        message = f'Revert "{subject}"\n\nThis reverts commit {named}.\n{self.said()}'
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def go_on(self) -> None:
        happen: list[Callable[[], None]] = [
            self.add, self.add, self.add, self.replace, self.replace, self.remove, self.undo,
            self.sear, self.unsear, self.settle, self.capture, self.restore, self.commit,
        ]  # fmt: skip
        for _ in range(self.chance.randrange(3, 18)):
            try:
                self.chance.choice(happen)()
            except (SoulgitError, IndexError):
                continue  # what cannot be done at this moment is not done
        self.git("checkout", "-q", "-f", "HEAD")


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(n, marks=pytest.mark.slow) for n in range(8, 200))]
)
def test_the_laws_of_a_redaction(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    text = TEXTS[seed % len(TEXTS)]
    life = Life(tmp_path / "ava", text, chance)
    life.go_on()
    git = life.git
    known, faults = everything(git), verification.verify(git.path)
    redact(git.path, text)
    flat = " ".join(text.split())
    assert [kind for kind, data in objects(git) if is_in(data, flat)] == []
    assert len(verification.verify(git.path)) <= len(faults)
    git.agrees()
    if "\n" not in text:
        assert everything(git) == expected(known, text)
    with pytest.raises(TextNotFound):
        redact(git.path, text)


def is_in(data: bytes, text: str) -> bool:
    return any(
        unicodedata.normalize(form, text).encode() in b" ".join(data.split())
        for form in ("NFC", "NFD")
    )


def expected(known: object, text: str) -> object:
    """What is known of a history, with the mark in the place of the text in all files."""
    if isinstance(known, bytes):
        for form in ("NFC", "NFD"):
            known = known.replace(unicodedata.normalize(form, text).encode(), MARK.encode())
        return known
    if isinstance(known, dict):
        return {key: expected(value, text) for key, value in known.items()}
    if isinstance(known, (list, tuple)):
        return type(known)(expected(value, text) for value in known)
    return known


def test_the_scan_of_these_tests_finds_what_it_should(tmp_path: Path) -> None:
    git = git_home(tmp_path / "ava", {"MEMORY.md": "- sword\n  fish\n"})
    assert Git(git.path)("log", "--format=%s") == "by hand"
    assert [kind for kind, data in objects(git) if is_in(data, "sword fish")] == ["blob"]
    assert holds("x swordf…".encode(), "swordfish")
