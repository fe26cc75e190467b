"""The data of all contenders: memory entries, and actions that add and remove them.

Every action makes bytes that were never there before, for a store that finds its object
already written would not have to write it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MEMORY = "MEMORY.md"
ENTRY_LENGTH = 77
"""With its bullet and its line end an entry is 80 bytes."""

ENTRIES_OF_10_KB = 128

FILES = {
    "SOUL.md": "# Bo\n\nYou are Bo, the companion of one person.\n\n"
    + "## Values\n\nYou say what is so, also where it is not what was hoped for.\n" * 6,
    "IDENTITY.md": "- Name: Bo\n- Creature: heron\n- Vibe: patient\n",
    "USER.md": "- the user is called Ann\n- the user lives by the harbour\n" * 8,
}
"""The other files of a home, which stay as they are."""

_PROSE = (
    "the user likes tea plain bread in winter and walks to harbour with her brother who has "
    "moved from Lisbon last spring but calls on Sundays about garden repairs, an old boat, "
    "train times, letters not sent, keys under third stone, music at night, deadlines, "
    "doctor visits, small debts, names of cats, recipes without salt and plans for June"
)
_WORDS = _PROSE.split()


def entry_text(number: int) -> str:
    """Return the text of an entry, always the same one, of always the same length."""
    chosen = " ".join(random.Random(number).choices(_WORDS, k=ENTRY_LENGTH // 2))
    text = f"{number:07d} {chosen}"[:ENTRY_LENGTH]
    return text if not text.endswith(" ") else text[:-1] + "."


@dataclass(frozen=True)
class Action:
    """One action of a memory tool, and the memory file as it is afterwards."""

    kind: str
    text: str
    data: bytes


class Notebook:
    """The entries of a memory file, in order, and the actions that change them."""

    def __init__(self, entries: int) -> None:
        self._texts = [entry_text(number) for number in range(entries)]
        self._next = entries

    @property
    def data(self) -> bytes:
        """The memory file as it should be now."""
        return "".join(f"- {text}\n" for text in self._texts).encode()

    def add(self) -> Action:
        """Add a new entry at the end."""
        text = entry_text(self._next)
        self._next += 1
        self._texts.append(text)
        return Action("add", text, self.data)

    def remove(self, place: int = 0) -> Action:
        """Remove the entry at a place; the oldest, so that no earlier file comes again."""
        text = self._texts.pop(place)
        return Action("remove", text, self.data)

    def steady(self) -> Iterator[Action]:
        """Yield actions for ever that leave the size as it is: add, remove, add, remove."""
        while True:
            yield self.add()
            yield self.remove()

    def filling(self) -> Iterator[Action]:
        """Yield actions for ever of which five leave one more entry: the file of a long life."""
        chance = random.Random(0)
        while True:
            for _ in range(3):
                yield self.add()
            for _ in range(2):
                yield self.remove(chance.randrange(len(self._texts)))


def put_files(directory: Path, memory: bytes) -> None:
    """Write the files that every contender begins with."""
    directory.mkdir(parents=True)
    for name, text in FILES.items():
        (directory / name).write_text(text, encoding="utf-8")
    (directory / MEMORY).write_bytes(memory)
