"""A home's repository: what it holds, and the objects and refs that are put into it."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import pygit2
from pygit2.enums import FileMode, ObjectType, RepositoryState, SortMode

from soulgit.core.actor import Identity, Moment
from soulgit.core.links import Resolved, resolve
from soulgit.directories import nearest_directory
from soulgit.disk import storage_faults, sync_directory
from soulgit.errors import ConflictPending, NotAHome, ObjectMissing, RepositoryRefused, UnsafeFile
from soulgit.git import durability
from soulgit.git.faults import translated
from soulgit.git.incoming import Incoming
from soulgit.git.loose import refuse_cut_off
from soulgit.git.values import LINK_MODE, TREE_MODE, Commit, Head, TreeEntry

_IN_PROGRESS = {
    RepositoryState.MERGE: "merge",
    RepositoryState.REVERT: "revert", RepositoryState.REVERT_SEQUENCE: "revert",
    RepositoryState.CHERRYPICK: "cherry-pick", RepositoryState.CHERRYPICK_SEQUENCE: "cherry-pick",
    RepositoryState.REBASE: "rebase", RepositoryState.REBASE_INTERACTIVE: "rebase",
    RepositoryState.REBASE_MERGE: "rebase",
    RepositoryState.APPLY_MAILBOX: "git am", RepositoryState.APPLY_MAILBOX_OR_REBASE: "git am",
}  # fmt: skip


def refuse_bare(path: str) -> None:
    """Raise RepositoryRefused for a directory that is itself a git directory."""
    if os.path.isfile(os.path.join(path, "HEAD")) and os.path.isdir(os.path.join(path, "objects")):
        raise RepositoryRefused(
            f"{path} is a bare repository, which has no working files",
            hint="clone it: `git clone BARE HOME`, and use the clone",
        )


_FILE_MODES = (int(FileMode.BLOB), int(FileMode.BLOB_EXECUTABLE))

_SUBMODULE_MODE = 0o160000

_KEPT = 256
"""How many objects an opened repository keeps: what an action reads, it reads several times."""

_KEPT_BLOB_BYTES = 65_536

_Kind = TypeVar("_Kind", pygit2.Commit, pygit2.Tree, pygit2.Blob)
_Value = TypeVar("_Value")


def _keep(kept: dict[str, _Value], object_id: str, value: _Value) -> None:
    """Keep what an id names, which never changes; a full store begins anew."""
    if len(kept) >= _KEPT:
        kept.clear()
    kept[object_id] = value


class Repository:
    """A repository opened exactly at a directory, never one further up."""

    def __init__(self, handle: pygit2.Repository, path: str, durable: bool) -> None:
        self._handle = handle
        self.path = path
        self._durable = durable
        self.git_dir = handle.path
        self._commits: dict[str, Commit] = {}
        self._trees: dict[str, pygit2.Tree] = {}
        self._blobs: dict[str, bytes] = {}
        self._intact: set[str] = set()

    @classmethod
    def open(cls, path: str, *, durable: bool = True) -> Repository:
        """Open the repository of a directory; raises NotAHome where it has none of its own.

        With `durable`, what is written to it is on the disk when the writing call returns.
        """
        refuse_bare(path)
        if not os.path.lexists(os.path.join(path, ".git")):
            raise NotAHome(f"{path} is not a home: it has no git repository of its own", path=path)
        with translated(path):
            # A partial clone is read like any other; what it lacks is missed one by one.
            pygit2.settings.set_extensions(["partialclone"])
            handle = durability.opened(path, durable)
        workdir = handle.workdir
        if workdir is None:
            raise RepositoryRefused(
                f"the repository of {path} is set to be bare",
                hint=f"git -C {path} config core.bare false",
            )
        if os.path.realpath(workdir) != os.path.realpath(path):
            raise RepositoryRefused(
                f"the repository of {path} keeps its working files elsewhere: {workdir}",
                hint="use that directory; for a linked home that was moved, `git worktree repair`",
            )
        return cls(handle, path, durable)

    @classmethod
    def create(cls, path: str) -> None:
        """Make an empty repository, on branch main whatever git's configuration says."""
        with translated(path):
            pygit2.init_repository(path, initial_head="main")

    @staticmethod
    def enclosing(path: str) -> str | None:
        """Return the repository in whose working tree or git directory a directory lies, if any."""
        with translated(path):
            return pygit2.discover_repository(path)

    @cached_property
    def incoming(self) -> Incoming:
        """The new objects, which wait until they are placed, or are dropped."""
        return Incoming(self._handle, self._objects_dir, self._durable)

    @cached_property
    def _objects_dir(self) -> str:
        return os.path.join(self.common_dir, "objects")

    def release(self) -> None:
        """Close packs and other files, for libgit2 keeps those open that are gone."""
        vars(self).pop("incoming", None)
        with translated(self.path):
            durability.released(self._handle, self._durable)

    @cached_property
    def common_dir(self) -> str:
        """The git directory that linked homes share."""
        try:
            named = Path(self.git_dir, "commondir").read_text().strip()
        except OSError:
            return os.path.normpath(self.git_dir)
        return os.path.normpath(os.path.join(self.git_dir, named))

    def refuse_unfinished(self) -> None:
        """Raise ConflictPending while a merge, rebase or the like is in progress."""
        with translated(self.path):
            operation = _IN_PROGRESS.get(RepositoryState(self._handle.state()))
        if operation:
            raise ConflictPending(f"a {operation} is in progress in {self.path}")

    @property
    def is_shallow(self) -> bool:
        """Whether the history is cut somewhere."""
        return self._handle.is_shallow

    # Refs

    def head(self) -> Head:
        """Return where HEAD is now."""
        name = "HEAD"
        with translated(self.path):
            while (reference := self._handle.references.get(name)) is not None:
                target = reference.target
                if isinstance(target, pygit2.Oid):
                    return Head(None if name == "HEAD" else name, str(target))
                name = target
        return Head(name, None)

    def lock_path(self, name: str) -> str:
        """Return the path of a ref's lock; each home has a HEAD of its own."""
        directory = self.git_dir if name == "HEAD" else self.common_dir
        return os.path.join(directory, name + ".lock")

    def reflog_path(self, name: str) -> str:
        """Return the path of a ref's log; each home has one of HEAD of its own."""
        directory = self.git_dir if name == "HEAD" else self.common_dir
        return os.path.join(directory, "logs", name)

    def head_target(self) -> str | None:
        """Return the ref that HEAD itself names, None where it is detached."""
        with translated(self.path):
            target = self._handle.lookup_reference("HEAD").target
        return None if isinstance(target, pygit2.Oid) else target

    def is_ancestor(self, commit_id: str, of: str) -> bool:
        """Whether a commit is another one or among its ancestors."""
        with translated(self.path):
            return commit_id == of or self._handle.descendant_of(of, commit_id)

    def ref(self, name: str) -> str | None:
        """Return the commit that a ref names, None where there is no such ref."""
        with translated(self.path):
            reference = self._handle.references.get(name)
            if reference is None:
                return None
            target = reference.target
            return str(target if isinstance(target, pygit2.Oid) else reference.resolve().target)

    def create_ref(self, name: str, commit_id: str, message: str) -> bool:
        """Make a ref, for which no lock of soulgit's is needed; return False where it is there."""
        self.incoming.store()
        with self.names_synced(name), translated(self.path):
            try:
                self._handle.create_reference_direct(
                    name, pygit2.Oid(hex=commit_id), False, message=message
                )
            except pygit2.AlreadyExistsError:
                return False
        return True

    def set_ref(self, name: str, commit_id: str, message: str) -> None:
        """Make a ref name a commit, whatever it named before."""
        self.incoming.store()
        with self.names_synced(name), translated(self.path):
            self._handle.create_reference_direct(
                name, pygit2.Oid(hex=commit_id), True, message=message
            )

    def delete_ref(self, name: str) -> None:
        """Take a ref away, if it is there."""
        with translated(self.path):
            if name in self._handle.references:
                self._handle.references.delete(name)
        if self._durable:  # libgit2 does not sync a deletion, and takes empty directories along
            with storage_faults(f"{name} cannot be synced"):
                sync_directory(nearest_directory(os.path.join(self.common_dir, name)))

    def names_synced(self, *names: str) -> contextlib.AbstractContextManager[None]:
        """Bring the names of directories that refs and reflogs need to the disk, once made."""
        logs = [os.path.join(self.git_dir, "logs", "HEAD")]
        paths = [os.path.join(self.common_dir, place, n) for n in names for place in ("", "logs")]
        return durability.names_synced(logs + paths, self._durable)

    def refs(self, prefix: str = "") -> Iterator[str]:
        """Yield the names of the refs that begin with `prefix`."""
        with translated(self.path):
            names = [
                name.decode("utf-8", "replace") for name in self._handle.raw_listall_references()
            ]
        return (name for name in names if name.startswith(prefix))

    def resolve(self, revision: str) -> str | None:
        """Return the commit that a revision names as `git rev-parse` would, None for none."""
        try:
            found = self._handle.revparse_single(revision)
            commit = found.peel(ObjectType.COMMIT)
        except (pygit2.GitError, KeyError, ValueError, OSError):
            return None  # libgit2 raises each of these for a mere wrong name
        return str(commit.id)

    # Objects

    def commit(self, commit_id: str) -> Commit:
        """Return a commit by its full id."""
        known = self._commits.get(commit_id)
        if known is None:
            known = self._read_commit(commit_id)
            _keep(self._commits, commit_id, known)
        return known

    def _read_commit(self, commit_id: str) -> Commit:
        found = self._object(commit_id, pygit2.Commit)
        author = found.author
        name, email = (
            raw.decode("utf-8", "replace") for raw in (author.raw_name, author.raw_email)
        )
        return Commit(
            id=commit_id,
            parents=tuple(str(parent) for parent in found.parent_ids),
            tree=str(found.tree_id),
            author=Identity(name, email),
            time=Moment(found.commit_time, found.commit_time_offset),
            message=found.raw_message.decode("utf-8", "replace"),
        )

    def is_made_at_once(self, commit_id: str) -> bool:
        """Whether a commit's author and committer are the same, at the same time."""
        found = self._object(commit_id, pygit2.Commit)
        author, committer = found.author, found.committer
        return (author.raw_name, author.raw_email, author.time, author.offset) == (
            committer.raw_name, committer.raw_email, committer.time, committer.offset,
        )  # fmt: skip

    def read_all(self, commit_id: str) -> None:
        """Read a commit and all that its tree holds from the store, where hashes are checked.

        Raises ObjectMissing or RepositoryRefused for what is not here or is damaged.
        """
        tree_id = str(self._object(commit_id, pygit2.Commit).tree_id)
        for object_id in (commit_id, *self._below(tree_id)):
            if object_id not in self._intact:
                refuse_cut_off(self._objects_dir, object_id)
                with translated(self.path):
                    self._handle.read(pygit2.Oid(hex=object_id))
                self._intact.add(object_id)

    def _below(self, tree_id: str) -> Iterator[str]:
        if tree_id in self._intact:
            return
        yield tree_id
        for entry in self.children(tree_id):
            if entry.mode == TREE_MODE:
                yield from self._below(entry.id)
            elif entry.mode != _SUBMODULE_MODE:
                yield entry.id

    def has(self, object_id: str) -> bool:
        """Whether an object is here."""
        return pygit2.Oid(hex=object_id) in self._handle.odb

    def names(self, tree_id: str, directory: str = "") -> list[str]:
        """Return the names in a directory of a tree, names that are no UTF-8 escaped."""
        tree = self._subtree(tree_id, directory)
        if tree is None:
            return []
        return [(entry.raw_name or b"").decode("utf-8", "backslashreplace") for entry in tree]

    def entry(self, tree_id: str, path: str) -> TreeEntry | None:
        """Return what stands at a path of a tree, links not followed."""
        directory, _, name = path.rpartition("/")
        tree = self._subtree(tree_id, directory)
        if tree is None or name not in tree:
            return None
        found = tree[name]
        return TreeEntry(int(found.filemode), str(found.id))

    def children(self, tree_id: str) -> Iterator[TreeEntry]:
        """Yield what stands in a tree itself, not further down."""
        for entry in self._object(tree_id, pygit2.Tree):
            yield TreeEntry(int(entry.filemode), str(entry.id))

    def follow(self, tree_id: str, path: str) -> Resolved:
        """Follow the links at a path of a tree."""
        return resolve(path, lambda part: self._link_target(tree_id, part))

    def read(self, tree_id: str, path: str) -> bytes | None:
        """Return the bytes at a path of a tree, links followed; None where nothing is there."""
        found = None if "/" in path else self.entry(tree_id, path)
        if found is not None and found.mode in _FILE_MODES:
            return self.blob(found.id)
        resolved = self.follow(tree_id, path)
        entry = self.entry(tree_id, resolved.path)
        if entry is None:
            if resolved.links:
                raise UnsafeFile(
                    f"{path} is a link to {resolved.links[-1][1]!r}, which is not there"
                )
            return None
        if entry.mode not in _FILE_MODES:
            raise UnsafeFile(f"{path} is no file in this revision")
        return self.blob(entry.id)

    def blob(self, blob_id: str) -> bytes:
        """Return the bytes of a blob."""
        known = self._blobs.get(blob_id)
        if known is None:
            known = self._object(blob_id, pygit2.Blob).data
            self._keep_blob(blob_id, known)
        return known

    def _keep_blob(self, blob_id: str, data: bytes) -> None:
        if len(data) <= _KEPT_BLOB_BYTES:
            _keep(self._blobs, blob_id, data)

    @staticmethod
    @functools.lru_cache(maxsize=16)  # the same few files are asked for again and again
    def hash_blob(data: bytes) -> str:
        """Return the id that bytes have as a blob, without storing them."""
        return str(pygit2.hash(data))

    def write_blob(self, data: bytes) -> str:
        """Store bytes as they are, no filter applied, and return their id."""
        with self._writing():
            blob_id = str(self._handle.create_blob(data))
        self._keep_blob(blob_id, data)
        return blob_id

    def write_tree(self, base: str | None, changes: Mapping[str, TreeEntry | None]) -> str:
        """Store a tree that differs from `base` in some paths (None: gone) and return its id."""
        nested: dict[str, dict[str, TreeEntry | None]] = {}
        with self._writing():
            tree = self._object(base, pygit2.Tree) if base else None
            builder = self._handle.TreeBuilder(tree) if tree else self._handle.TreeBuilder()
            for path, entry in changes.items():
                name, slash, rest = path.partition("/")
                if slash:
                    nested.setdefault(name, {})[rest] = entry
            for name, below in nested.items():
                self._insert_directory(builder, name, below)
            # Last, so that what takes a directory's place wins over what went from it.
            for name, entry in changes.items():
                if "/" not in name:
                    self._insert(builder, name, entry)
            return str(builder.write())

    def write_commit(
        self, tree: str, parents: tuple[str, ...], message: str, author: Identity, when: Moment
    ) -> str:
        """Store a commit, author and committer alike, and return its id; no ref moves."""
        with self._writing():
            signature = pygit2.Signature(
                author.name, author.email, when.seconds, when.offset_minutes, "utf-8"
            )
            return str(
                self._handle.create_commit(
                    None,
                    signature,
                    signature,
                    message,
                    pygit2.Oid(hex=tree),
                    [pygit2.Oid(hex=parent) for parent in parents],
                )
            )

    def _writing(self) -> translated:
        """Let what libgit2 writes now wait with the new objects."""
        self.incoming.begin()
        return translated(self.path)

    # Settings and attributes

    def setting(self, name: str) -> str | None:
        """Return a value of git's configuration."""
        with translated(self.path), contextlib.suppress(UnicodeDecodeError, KeyError):
            return self._handle.config[name]
        return None

    def attribute(self, path: str, name: str) -> str | None:
        """Return the value of a git attribute of a path, `set` for none but set, else None."""
        with translated(self.path):
            value = self._handle.get_attr(path, name)
        return value if isinstance(value, str) else "set" if value else None

    def is_ignored(self, path: str) -> bool:
        """Whether an ignore rule hides a path from git."""
        with translated(self.path):
            return self._handle.path_is_ignored(path)

    # History

    def region(self, commit_id: str, hidden: str | None) -> Iterator[str]:
        """Yield a commit and its ancestors that are none of `hidden`'s, children first."""
        with translated(self.path):
            walker = self._handle.walk(
                pygit2.Oid(hex=commit_id), SortMode.TOPOLOGICAL | SortMode.TIME
            )
            if hidden is not None:
                walker.hide(pygit2.Oid(hex=hidden))
            for commit in walker:
                yield str(commit.id)

    def merge_base(self, commit_ids: tuple[str, ...]) -> str | None:
        """Return a common ancestor of all commits, None where their histories are unrelated."""
        with translated(self.path):
            found = self._handle.merge_base_octopus(list(commit_ids))
        return None if found is None else str(found)

    def _object(self, object_id: str, kind: type[_Kind]) -> _Kind:
        found: pygit2.Object | None = self._trees.get(object_id)
        if found is None:
            refuse_cut_off(self._objects_dir, object_id)
            with translated(self.path):
                found = self._handle.get(object_id)
            if found is None:
                raise ObjectMissing(f"object {object_id[:12]} of {self.path} is not here")
            if isinstance(found, pygit2.Tree):
                _keep(self._trees, object_id, found)
        if not isinstance(found, kind):
            raise RepositoryRefused(f"object {object_id[:12]} of {self.path} is a {found.type_str}")
        return found

    def _subtree(self, tree_id: str, directory: str) -> pygit2.Tree | None:
        tree = self._object(tree_id, pygit2.Tree)
        for part in filter(None, directory.split("/")):
            if part not in tree or tree[part].filemode != FileMode.TREE:
                return None
            tree = self._object(str(tree[part].id), pygit2.Tree)
        return tree

    def _link_target(self, tree_id: str, path: str) -> str | None:
        entry = self.entry(tree_id, path)
        if entry is None or entry.mode != LINK_MODE:
            return None
        return self.blob(entry.id).decode("utf-8", "surrogateescape")

    @staticmethod
    def _insert(builder: pygit2.TreeBuilder, name: str, entry: TreeEntry | None) -> None:
        if entry is not None:
            builder.insert(name, pygit2.Oid(hex=entry.id), FileMode(entry.mode))
        elif builder.get(name) is not None:
            builder.remove(name)

    def _insert_directory(
        self, builder: pygit2.TreeBuilder, name: str, below: dict[str, TreeEntry | None]
    ) -> None:
        found = builder.get(name)
        base = str(found.id) if found is not None and found.filemode == FileMode.TREE else None
        tree = self.write_tree(base, below)
        if self._object(tree, pygit2.Tree):
            builder.insert(name, pygit2.Oid(hex=tree), FileMode.TREE)
        elif found is not None:
            builder.remove(name)
