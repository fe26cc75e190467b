"""A home's repository: what it holds, and the objects and refs that are put into it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import pygit2
from pygit2.enums import FileMode, ObjectType, RepositoryOpenFlag, RepositoryState, SortMode

from soulgit.core.actor import Identity, Moment
from soulgit.core.links import Resolved, resolve
from soulgit.errors import ConflictPending, NotAHome, ObjectMissing, RepositoryRefused, UnsafeFile
from soulgit.git.faults import translated
from soulgit.git.values import LINK_MODE, Commit, Head, TreeEntry

_IN_PROGRESS = {
    RepositoryState.MERGE: "merge",
    RepositoryState.REVERT: "revert",
    RepositoryState.REVERT_SEQUENCE: "revert",
    RepositoryState.CHERRYPICK: "cherry-pick",
    RepositoryState.CHERRYPICK_SEQUENCE: "cherry-pick",
    RepositoryState.REBASE: "rebase",
    RepositoryState.REBASE_INTERACTIVE: "rebase",
    RepositoryState.REBASE_MERGE: "rebase",
    RepositoryState.APPLY_MAILBOX: "git am",
    RepositoryState.APPLY_MAILBOX_OR_REBASE: "git am",
}


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def refuse_bare(path: str) -> None:
    """Raise RepositoryRefused for a directory that is itself a git directory."""
    if os.path.isfile(os.path.join(path, "HEAD")) and os.path.isdir(os.path.join(path, "objects")):
        raise RepositoryRefused(
            f"{path} is a bare repository, which has no working files",
            hint="clone it: `git clone BARE HOME`, and use the clone",
        )


_Kind = TypeVar("_Kind", pygit2.Commit, pygit2.Tree, pygit2.Blob)


class Repository:
    """A repository opened exactly at a directory, never one further up."""

    def __init__(self, handle: pygit2.Repository, path: str) -> None:
        self._handle = handle
        self.path = path
        self.git_dir = handle.path

    @classmethod
    def open(cls, path: str) -> Repository:
        """Open the repository of a directory; raises NotAHome where it has none of its own."""
        refuse_bare(path)
        if not os.path.lexists(os.path.join(path, ".git")):
            raise NotAHome(f"{path} is not a home: it has no git repository of its own", path=path)
        with translated(path):
            # A partial clone is read like any other; what it lacks is missed one by one.
            pygit2.settings.set_extensions(["partialclone"])
            handle = pygit2.Repository(path, RepositoryOpenFlag.NO_SEARCH)
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
        return cls(handle, path)

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

    @staticmethod
    def set_durable(durable: bool) -> None:
        """Say whether libgit2 syncs objects, refs and reflogs; it knows one setting a process."""
        pygit2.settings.enable_fsync_gitdir(durable)

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
            return None if reference is None else str(reference.resolve().target)

    def create_ref(self, name: str, commit_id: str, message: str) -> bool:
        """Make a ref, for which no lock of soulgit's is needed; return False where it is there."""
        with translated(self.path):
            try:
                self._handle.create_reference_direct(
                    name, pygit2.Oid(hex=commit_id), False, message=message
                )
            except pygit2.AlreadyExistsError:
                return False
        return True

    def set_ref(self, name: str, commit_id: str, message: str) -> None:
        """Make a ref name a commit, whatever it named before."""
        with translated(self.path):
            self._handle.create_reference_direct(
                name, pygit2.Oid(hex=commit_id), True, message=message
            )

    def delete_ref(self, name: str) -> None:
        """Take a ref away, if it is there."""
        with translated(self.path):
            if name in self._handle.references:
                self._handle.references.delete(name)

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

    def follow(self, tree_id: str, path: str) -> Resolved:
        """Follow the links at a path of a tree."""
        return resolve(path, lambda part: self._link_target(tree_id, part))

    def read(self, tree_id: str, path: str) -> bytes | None:
        """Return the bytes at a path of a tree, links followed; None where nothing is there."""
        resolved = self.follow(tree_id, path)
        entry = self.entry(tree_id, resolved.path)
        if entry is None:
            if resolved.links:
                raise UnsafeFile(
                    f"{path} is a link to {resolved.links[-1][1]!r}, which is not there"
                )
            return None
        if entry.mode not in (FileMode.BLOB, FileMode.BLOB_EXECUTABLE):
            raise UnsafeFile(f"{path} is no file in this revision")
        return self.blob(entry.id)

    def blob(self, blob_id: str) -> bytes:
        """Return the bytes of a blob."""
        return self._object(blob_id, pygit2.Blob).data

    @staticmethod
    def hash_blob(data: bytes) -> str:
        """Return the id that bytes have as a blob, without storing them."""
        return str(pygit2.hash(data))

    def write_blob(self, data: bytes) -> str:
        """Store bytes as they are, no filter applied, and return their id."""
        with translated(self.path):
            return str(self._handle.create_blob(data))

    def write_tree(self, base: str | None, changes: Mapping[str, TreeEntry | None]) -> str:
        """Store a tree that differs from `base` in some paths (None: gone) and return its id."""
        nested: dict[str, dict[str, TreeEntry | None]] = {}
        with translated(self.path):
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
        with translated(self.path):
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

    # Linked homes

    def linked_dir(self, directory: str) -> str:
        """Return the git directory that a linked home in a directory has, or would have."""
        digest = self.hash_blob(os.path.abspath(directory).encode("utf-8", "surrogateescape"))
        return os.path.join(self.common_dir, "worktrees", f"soulgit-{digest[:12]}")

    def link_home(self, directory: str, ref: str, tree_id: str) -> None:
        """Make a linked home of a branch, which need not be there yet, with a tree's bytes.

        Nothing is filtered on the way: the files are the blobs.
        """
        git_dir = self.linked_dir(directory)
        os.makedirs(git_dir)
        os.makedirs(directory)
        self._write_out(self._object(tree_id, pygit2.Tree), directory)
        for name, text in (
            ("HEAD", f"ref: {ref}"),
            ("commondir", "../.."),
            ("gitdir", os.path.join(os.path.abspath(directory), ".git")),
        ):
            Path(git_dir, name).write_text(text + "\n", encoding="utf-8")
        with translated(self.path):
            index = pygit2.Index(os.path.join(git_dir, "index"))
            index.read_tree(self._object(tree_id, pygit2.Tree))
            index.write()
        Path(directory, ".git").write_text(f"gitdir: {git_dir}\n", encoding="utf-8")

    def _write_out(self, tree: pygit2.Tree, directory: str) -> None:
        for entry in tree:
            path = os.path.join(directory, os.fsdecode(entry.raw_name or b""))
            if entry.filemode == FileMode.TREE:
                os.mkdir(path)
                self._write_out(self._object(str(entry.id), pygit2.Tree), path)
            elif entry.filemode == FileMode.LINK:
                os.symlink(os.fsdecode(self.blob(str(entry.id))), path)
            elif entry.filemode in (FileMode.BLOB, FileMode.BLOB_EXECUTABLE):
                Path(path).write_bytes(self.blob(str(entry.id)))
                if entry.filemode == FileMode.BLOB_EXECUTABLE:
                    os.chmod(path, 0o777 & ~_umask())

    # Settings and attributes

    def setting(self, name: str) -> str | None:
        """Return a value of git's configuration."""
        with translated(self.path), contextlib.suppress(UnicodeDecodeError):
            config = self._handle.config
            return config[name] if name in config else None  # noqa: SIM401  # it has no get
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
        with translated(self.path):
            found = self._handle.get(object_id)
        if found is None:
            raise ObjectMissing(f"object {object_id[:12]} of {self.path} is not here")
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
