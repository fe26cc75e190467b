"""Re-reading: memories given to a reader in batches, and its answers put in their place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soulgit.core import edits, entries
from soulgit.core.composition import SEARED_MARKER
from soulgit.core.entries import Entry
from soulgit.core.layout import TARGETS, Layout, Target, memory_name
from soulgit.errors import AnswerRefused, SoulgitError

_COVERED = re.compile(r"entries (\d+) to (\d+) of (\d+)")


class Batch(tuple[str, ...]):
    """The texts of some entries, in order, with the seared ones beside them as context."""

    seared: tuple[str, ...]

    def __new__(cls, texts: Sequence[str], seared: Sequence[str]) -> Batch:
        """Make a batch of texts."""
        batch = super().__new__(cls, texts)
        batch.seared = tuple(seared)
        return batch


@dataclass(frozen=True)
class Readable:
    """An entry that can be re-read, and whose it is."""

    target: Target
    entry: Entry


def readable(files: Mapping[str, bytes], layout: Layout) -> list[Readable]:
    """Return the entries of both memory files that are not seared, in order."""
    return [
        Readable(target, entry)
        for target in TARGETS
        for entry in entries.split(_source(files, target), layout)
        if not entry.seared
    ]


def seared_texts(files: Mapping[str, bytes], layout: Layout) -> list[str]:
    """Return the texts of the seared entries, without their marker."""
    return [
        entry.plain
        for target in TARGETS
        for entry in entries.split(_source(files, target), layout)
        if entry.seared
    ]


def put(
    files: Mapping[str, bytes], layout: Layout, first: int, answers: Sequence[str]
) -> dict[str, bytes]:
    """Return the memory files with the entries from `first` on, from 0, reading as answered.

    No byte outside those entries changes. Raises AnswerRefused for an answer that would
    not stay one entry.
    """
    known = readable(files, layout)
    changed: dict[str, bytes] = {}
    fitted: list[str] = []
    for target in TARGETS:
        source = _source(files, target)
        chosen = [
            (item.entry, answer)
            for item, answer in zip(known[first:], answers, strict=False)
            if item.target == target
        ]
        texts = [_fitted(source, entry, answer, layout) for entry, answer in chosen]
        for (entry, _), text in reversed([*zip(chosen, texts, strict=True)]):
            source = source[: entry.start] + text + source[entry.end :]
        fitted += texts
        if chosen:
            changed[memory_name(target)] = source.encode("utf-8", "surrogateescape")
    _refuse_broken(files, {**files, **changed}, layout, first, fitted)
    return changed


def refuse_answer(asked: Sequence[str], answer: object, layout: Layout) -> list[str]:
    """Return a reader's answer as texts; raises AnswerRefused for one that is none.

    It must have one text for each that was asked, none of them empty.
    """
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Sequence):
        raise AnswerRefused("the reader's answer is no list of texts")
    if len(answer) != len(asked):
        what = "loses" if len(answer) < len(asked) else "adds"
        raise AnswerRefused(
            f"the reader {what} entries: {len(asked)} asked, {len(answer)} answered"
        )
    texts = []
    for number, text in enumerate(answer, 1):
        if not isinstance(text, str) or not text.strip():
            raise AnswerRefused(f"the reader empties entry {number}")
        if SEARED_MARKER in text:
            raise AnswerRefused(f"the reader sears entry {number}, which only a person may")
        try:
            edits.check_text(text, layout)
        except SoulgitError as fault:
            raise AnswerRefused(f"the reader's entry {number}: {fault}") from fault
        texts.append(text.strip())
    return texts


def told(first: int, count: int, total: int) -> str:
    """Return what a re-reading commit says it covers, from 1."""
    return f"entries {first + 1} to {first + count} of {total}"


def covered(text: str | None) -> int:
    """Return how many entries a re-reading commit and those before it cover."""
    found = _COVERED.search(text or "")
    return int(found.group(2)) if found else 0


def _source(files: Mapping[str, bytes], target: Target) -> str:
    return files.get(memory_name(target), b"").decode("utf-8", "surrogateescape")


def _fitted(source: str, entry: Entry, answer: str, layout: Layout) -> str:
    """Give an answer the line ends of its file and, in a list item, the indent of its lines."""
    end = "\r\n" if "\r\n" in source else "\n"
    lines = answer.replace("\r\n", "\n").split("\n")
    bullet = source[entry.outer_start : entry.start].strip()
    if bullet and layout.delimiter is None:
        lines = [lines[0], *(_indented(line) for line in lines[1:])]
    return end.join(lines)


def _indented(line: str) -> str:
    return line if not line.strip() or line.startswith((" ", "\t")) else "  " + line


def _refuse_broken(
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    layout: Layout,
    first: int,
    fitted: Sequence[str],
) -> None:
    had, has = (
        [(item.target, item.entry.text) for item in readable(files, layout)]
        for files in (before, after)
    )
    wanted = [text.replace("\r\n", "\n").strip() for text in fitted]
    behind = first + len(fitted)
    expected = [
        *had[:first],
        *((target, text) for (target, _), text in zip(had[first:behind], wanted, strict=True)),
        *had[behind:],
    ]
    if has != expected:
        raise AnswerRefused("an answer of the reader would not stay one entry, as a list item does")
