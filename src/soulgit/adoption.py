"""What a person changed by hand: found by comparing bytes, and made into commits of its own."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from soulgit import personas
from soulgit.core import layout
from soulgit.core.actor import UNKNOWN, Identity
from soulgit.core.entries import decode
from soulgit.core.layout import PERSONA_NAMES, Target
from soulgit.core.record import Record
from soulgit.errors import UnsafeFile
from soulgit.git import Repository, TreeEntry
from soulgit.git.values import EXECUTABLE_MODE, FILE_MODE, LINK_MODE
from soulgit.working import Working, committed_paths

_EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""What `git add -N` puts into the index for a file that is not staged yet."""

Entries = dict[str, TreeEntry | None]


@dataclass(frozen=True)
class Step:
    """One commit to be made: what it changes in the tree, and what it says of it."""

    record: Record
    author: Identity
    entries: Entries = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)
    """What happened to each path, in words, where a person did it."""

    frees: str | None = None
    """The text of a seared entry that may change in this commit."""

    keeps_token: bool = False
    """Whether a doctor token may be committed as it is."""


_BY_HAND = Record("capture", origin="hand")


@dataclass(frozen=True)
class Hand:
    """Who is told to have made the changes that are found, and what else is known of them."""

    author: Identity = UNKNOWN
    record: Record = _BY_HAND
    frees: str | None = None
    keeps_token: bool = False
    adopts: bool = False
    """Whether a person adopts what is there, a persona that nobody has settled too."""


def role_paths(repository: Repository, working: Working, head_tree: str | None) -> list[str]:
    """Return the paths at which bootstrap files lie, lay in HEAD or may lie, links included."""
    paths = dict.fromkeys(path for _, path in working.layout.paths())
    paths |= dict.fromkeys(committed_paths(repository, head_tree))
    for file in working.files.values():
        paths |= dict.fromkeys([file.path, *(path for path, _ in file.links)])
    return list(paths)


def disk_entries(repository: Repository, working: Working, head_tree: str | None) -> Entries:
    """Return what a tree would hold of the working files; absent but committed ones are None.

    A file's mode is the disk's, or HEAD's where git ignores modes.
    """
    ignores_modes = repository.setting("core.filemode") == "false"
    entries: Entries = dict.fromkeys(committed_paths(repository, head_tree))
    for file in working.files.values():
        for path, target in file.links:
            data = target.encode("utf-8", "surrogateescape")
            entries[path] = TreeEntry(LINK_MODE, repository.hash_blob(data))
        is_executable = file.executable
        if ignores_modes:
            known = repository.entry(head_tree, file.path) if head_tree else None
            is_executable = known is not None and known.mode == EXECUTABLE_MODE
        mode = EXECUTABLE_MODE if is_executable else FILE_MODE
        entries[file.path] = TreeEntry(mode, repository.hash_blob(file.data))
    return entries


def found_steps(
    repository: Repository,
    head_tree: str | None,
    entries: Entries,
    staged: Mapping[str, TreeEntry],
    hand: Hand,
    aside: Container[str] = (),
) -> list[Step]:
    """Return a commit for what was staged and then changed again, and one for what is on disk.

    `entries` is what the disk has at every path in question, None for nothing. Paths that
    are `aside` are left as they are, for a person must decide on them first.
    """
    staged = {path: entry for path, entry in staged.items() if path not in aside}
    found = {path: entry for path, entry in entries.items() if path not in aside}
    head = _head_entries(repository, head_tree, found)
    index = {
        path: entry
        for path, entry in staged.items()
        if entry not in (head[path], found[path]) and not _is_intent_to_add(entry, head[path])
    }
    steps = [_step("staged", index, head, hand)] if index else []
    changed = {path: entry for path, entry in found.items() if entry != {**head, **index}[path]}
    if changed:
        steps.append(_step("changed", changed, {**head, **index}, hand))
    return steps


def persona_paths(working: Working) -> set[str]:
    """Return the paths of the persona's files, links and what is behind them."""
    paths = set(PERSONA_NAMES)
    for name in PERSONA_NAMES:
        if name in working.files:
            file = working.files[name]
            paths.update([file.path, *(path for path, _ in file.links)])
    return paths


def settling_step(hand: Hand) -> Step:
    """Return the commit that settles a persona that came by plain git, where no memory is."""
    record = replace(hand.record, action="edit", subject="persona: settle what came by git")
    return Step(record, hand.author)


def write_blobs(repository: Repository, working: Working, entries: Iterable[str]) -> None:
    """Store the blobs of those working files that the steps name."""
    wanted = set(entries)
    for file in working.files.values():
        for path, target in file.links:
            if path in wanted:
                repository.write_blob(target.encode("utf-8", "surrogateescape"))
        if file.path in wanted:
            repository.write_blob(file.data)


def refuse_filtered(repository: Repository, paths: Iterable[str]) -> None:
    """Raise UnsafeFile for a file that an attribute wants stored otherwise than it lies on disk."""
    for path in paths:
        for name in ("filter", "working-tree-encoding"):
            value = repository.attribute(path, name)
            if value not in (None, "set"):
                raise UnsafeFile(
                    f"{path} has the git attribute {name}={value}; "
                    "soulgit stores bytes as they are and would commit it in the clear",
                    hint=f"keep it out of the home, or drop the attribute for {path}",
                    path=path,
                )


def split_persona(repository: Repository, head_tree: str, step: Step) -> list[Step]:
    """Part a step in what leaves the persona as it is and an edit of the persona, if it is one."""
    told = {path for name in PERSONA_NAMES for path in (name, _behind(repository, head_tree, name))}
    if not told.intersection(step.entries):
        return [step]
    after = repository.write_tree(head_tree, step.entries)
    before_digest = personas.tree_digest(repository, head_tree)
    if personas.tree_digest(repository, after) == before_digest:
        return [step]
    edited = [path for path in step.entries if path in PERSONA_NAMES]
    if not edited:  # the bytes behind a link: one step, for its paths belong together
        edited = list(step.entries)
    rest = [path for path in step.entries if path not in edited]
    parts = [_part(step, rest)] if rest else []
    return [*parts, _as_edit(_part(step, edited))]


def retold(repository: Repository, before: str | None, after: str, step: Step) -> Step:
    """Tell a capture by entry, as far as it changed memory that was under way before it."""
    if before is None or step.record.action != "capture":
        return step
    from soulgit.core import telling, tracing  # for a capture alone

    def read(tree: str, target: Target) -> tracing.Version:
        data = personas.readable_contents(repository, tree).get(layout.memory_name(target))
        return tracing.read(decode(data), personas.tree_layout(repository, tree))

    both = {target: (read(before, target), read(after, target)) for target in layout.TARGETS}
    found = {target: tracing.compare(*versions) for target, versions in both.items()}
    changes = {target: change for target, change in found.items() if change}
    if not changes:
        return step
    told = {layout.memory_name(target) for target in changes}
    others = {p: line for p, line in step.lines.items() if p.rpartition("/")[2] not in told}
    subject, text = telling.subject(changes, others), telling.body(changes, step.lines)
    return replace(step, record=replace(step.record, subject=subject, text=text))


def _behind(repository: Repository, tree: str, path: str) -> str:
    """Return the path behind the links at a path of a tree, the path itself where they lead out."""
    try:
        return repository.follow(tree, path).path
    except UnsafeFile:
        return path


def _part(step: Step, paths: list[str]) -> Step:
    lines = {path: step.lines[path] for path in paths}
    entries = {path: step.entries[path] for path in paths}
    return replace(step, record=_told(step.record, lines), entries=entries, lines=lines)


def _as_edit(step: Step) -> Step:
    subject = f"persona: edit {', '.join(step.entries)} by hand"
    return replace(step, record=replace(step.record, action="edit", subject=subject, target=None))


def _step(
    verb: str,
    entries: Mapping[str, TreeEntry | None],
    before: Mapping[str, TreeEntry | None],
    hand: Hand,
) -> Step:
    lines = {path: f"{_verb(verb, before[path], entry)} {path}" for path, entry in entries.items()}
    record = _told(hand.record, lines)
    return Step(record, hand.author, dict(entries), lines, hand.frees, hand.keeps_token)


def _told(record: Record, lines: Mapping[str, str]) -> Record:
    """Return a record that says what happened to which path."""
    targets = {layout.target_of(path.rpartition("/")[2]) for path in lines}
    summary = f"capture: {', '.join(lines.values())}" if record.action == "capture" else None
    return replace(
        record,
        subject=summary or record.subject,
        text=record.text if record.action == "unsear" else "\n".join(lines.values()),
        target=targets.pop() if len(targets) == 1 else None,
    )


def _verb(verb: str, before: TreeEntry | None, after: TreeEntry | None) -> str:
    if after is None:
        return "deleted"
    return "added" if before is None and verb == "changed" else verb


def _head_entries(
    repository: Repository, head_tree: str | None, paths: Iterable[str]
) -> dict[str, TreeEntry | None]:
    if head_tree is None:
        return dict.fromkeys(paths)
    return {path: repository.entry(head_tree, path) for path in paths}


def _is_intent_to_add(entry: TreeEntry, head: TreeEntry | None) -> bool:
    return head is None and entry.id == _EMPTY_BLOB
