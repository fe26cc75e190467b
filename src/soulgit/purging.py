"""What a redaction takes away besides objects, and the search for what is left of the text."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator

from soulgit import disk, growth, landing
from soulgit import intent as intents
from soulgit.core.actor import UNKNOWN
from soulgit.core.redaction import Redactor
from soulgit.directories import remove_tree
from soulgit.errors import SoulgitError
from soulgit.git import Repository, packs
from soulgit.git.indexfile import bare, staged
from soulgit.git.objects import reachable, refs, stored
from soulgit.growth import Dropped, Known
from soulgit.landing import Ground, Plan
from soulgit.lockfile import exclusive
from soulgit.places import Place
from soulgit.remaking import holds

_MESSAGES = (
    "COMMIT_EDITMSG", "MERGE_MSG", "SQUASH_MSG", "TAG_EDITMSG", "NOTES_EDITMSG",
    "EDIT_DESCRIPTION", "ORIG_HEAD", "FETCH_HEAD", "REBASE_HEAD", "MERGE_RR", "AUTO_MERGE",
    "MERGE_AUTOSTASH", "gitk.cache", "lost-found", "logs", "info/refs", "objects/info/packs",
    "objects/info/commit-graph", "objects/info/commit-graphs",
)  # fmt: skip
"""What git keeps for later in a git directory, and does without."""

_OURS = "soulgit"
_OF_IDS = ("refs", "packed-refs", "HEAD", "index", _OURS)
"""What holds ids, in which a short text of hex digits may stand by chance."""

_PART_BYTES = 2**24
_OVERLAP_BYTES = 2**16


def git_dirs(places: Iterable[Place], repository: Repository) -> list[str]:
    """Return the git directories of all homes, the common one first."""
    return list(dict.fromkeys([repository.common_dir, *(place.git_dir for place in places)]))


def remembered(directories: Iterable[str], redactor: Redactor) -> bool:
    """Whether reflogs or messages that git keeps hold the text."""
    return any(
        _file_holds(path, redactor)
        for directory in directories
        for name in _MESSAGES
        for path in _files_below(os.path.join(directory, name))
    )


def drop_remembered(directories: Iterable[str], redactor: Redactor, *, durable: bool) -> None:
    """Take away reflogs and messages, and merges that git remembers with the text."""
    for directory in directories:
        for name in _MESSAGES:
            remove_tree(os.path.join(directory, name))
        for name in disk.names(directory):
            if name.startswith("sharedindex."):
                disk.discard(os.path.join(directory, name))
        merges = os.path.join(directory, "rr-cache")
        for name in disk.names(merges):
            paths = _files_below(os.path.join(merges, name))
            if any(_file_holds(path, redactor) for path in paths):
                remove_tree(os.path.join(merges, name))
        if durable:
            disk.sync_directory(directory)


def strip_index(ground: Ground) -> None:
    """Take away what an index remembers besides what is staged; the caller holds the writer lock.

    An intent names the lock meanwhile, so that the next writer knows it for a dead one's.
    """
    data = bare(ground.index_path)
    head = ground.repository.head()
    if data is None or head.ref is None or head.tip is None:
        return
    stays = Plan({head.ref: (head.tip, head.tip)}, "", UNKNOWN)
    ground.sync(intents.write(ground.state_dir, landing.intent_for(ground, stays)))
    lock = ground.index_path + ".lock"
    with exclusive(lock, intents.path(ground.state_dir), ground.wait_seconds):
        directory, name = os.path.split(ground.index_path)
        draft = os.path.join(ground.state_dir, "scratch", "index")
        before = os.stat(ground.index_path)
        disk.replace(directory, name, data, draft, durable=ground.durable)
        # By its time git knows which files it must still compare.
        os.utime(ground.index_path, ns=(before.st_atime_ns, before.st_mtime_ns))
        ground.sync([directory])
    intents.clear(ground.state_dir)


class Purge:
    """Keeps only the objects that refs lead to, and those that somebody stores just now.

    `since` is when the redaction began, in seconds since 1970: what is younger, leads from no
    ref and holds nothing of the text may be about to be used by another program.
    """

    def __init__(self, ground: Ground, packer: Repository, known: Known, since: float) -> None:
        self._ground = ground
        self._repository = packer
        self._known = known
        self._since = since

    def objects(self, redactor: Redactor, made: Iterable[str]) -> None:
        """Make one pack of what refs lead to, and take all else away; `made` are packs of ours."""
        repository, ours = self._repository, {f for name in made for f in packs.files_of(name)}
        files = packs.files(repository)
        loose = packs.loose(repository)
        garbage = packs.unfinished(repository)
        kept = reachable(repository, [*refs(repository)[0].values()])
        stays = self._stay(loose - set(kept), redactor)
        young = {name for name in files - ours if self._is_young_pack(name)}
        dropped = Dropped(frozenset(files - young), frozenset(loose - stays))
        growth.keep_only(self._ground, repository, self._known, kept, dropped)
        for path in garbage:
            if not self._is_young(path):
                disk.discard(path)

    def _is_young_pack(self, name: str) -> bool:
        return self._is_young(os.path.join(packs.directory(self._repository), name))

    def _stay(self, loose: set[str], redactor: Redactor) -> set[str]:
        """Return those of some loose objects that were just made, and hold nothing of the text."""
        repository = self._repository
        young = (one for one in loose if self._is_young(packs.loose_path(repository, one)))
        return {one for one in young if not _holds_surely(repository, redactor, one)}

    def _is_young(self, path: str) -> bool:
        made = disk.modified_at(path)
        return made is not None and self._since <= made <= time.time()


def _holds_surely(repository: Repository, redactor: Redactor, object_id: str) -> bool:
    try:
        return holds(repository, redactor, object_id)
    except SoulgitError:
        return True  # what cannot be read is of no use to anybody


# The search for what is left


def in_store(
    repository: Repository, redactor: Redactor, progress: Callable[[int, int], None]
) -> Iterator[str]:
    """Yield every object in the store that holds the text, and every ref whose name does."""
    ids = list(stored(repository))
    for done, object_id in enumerate(ids, 1):
        if holds(repository, redactor, object_id):
            yield f"object {object_id}"
        progress(done, len(ids))
    for name in (name for part in refs(repository) for name in part):
        if redactor.finds(name):
            yield "the name of a ref"


def in_git_dirs(
    directories: Iterable[str], redactor: Redactor, *, but_remembered: bool
) -> Iterator[str]:
    """Yield the files of git directories that hold the text, their objects aside.

    With `but_remembered`, what `drop_remembered` would take away is left out.
    """
    for directory in directories:
        for path in _files_below(directory):
            within = os.path.relpath(path, directory)
            top = within.split(os.sep, 1)[0]
            if top == "objects" or (top == "worktrees" and "index" in os.path.basename(within)):
                continue
            if top == "index" or (redactor.is_hex and top in (*_OF_IDS, "worktrees")):
                continue
            if but_remembered and _is_remembered(within):
                continue
            if _file_holds(path, redactor) or redactor.finds(within):
                yield redactor.text(path)


def _is_remembered(within: str) -> bool:
    """Whether a file, by its path in a common git directory, is one that is taken away."""
    own = within.split(os.sep)
    path = os.path.join(*own[2:]) if own[0] == "worktrees" and len(own) > 2 else within
    return any(path == name or path.startswith(name + os.sep) for name in (*_MESSAGES, "rr-cache"))


def in_index(index_path: str, redactor: Redactor) -> bool:
    """Whether the name of a file in an index holds the text."""
    return any(redactor.name(entry.path) != entry.path for entry in staged(index_path))


def in_files(root: str, redactor: Redactor) -> Iterator[str]:
    """Yield the paths of the files of a home that hold the text, or are named for it."""
    for path in _files_below(root):
        within = os.path.relpath(path, root)
        if within == ".git" or within.startswith(".git" + os.sep):
            continue
        if redactor.finds(within) or _file_holds(path, redactor):
            yield within


def _files_below(root: str) -> Iterator[str]:
    """Yield the files at or below a path, links to files and directories too."""
    if os.path.islink(root) or os.path.isfile(root):
        yield root
    for directory, below, names in os.walk(root):
        links = [name for name in below if os.path.islink(os.path.join(directory, name))]
        for name in sorted([*names, *links]):
            yield os.path.join(directory, name)


def _file_holds(path: str, redactor: Redactor) -> bool:
    """Whether a file's bytes hold the text, or what a link leads to does; never waits on a pipe."""
    if os.path.islink(path):
        return redactor.finds(os.readlink(path))
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            part = file.read(_PART_BYTES)
            while part:
                if redactor.is_in(part):
                    return True
                following = file.read(_PART_BYTES)
                part = part[-_OVERLAP_BYTES:] + following if following else b""
    except OSError:
        return False  # nobody may read it, soulgit neither
    return False
