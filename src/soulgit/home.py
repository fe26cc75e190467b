"""An opened home: its files, its repository, and the lock of whoever writes to it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from soulgit import directories, disk, lockfile, personas
from soulgit.core import composition, soulfile
from soulgit.core.actor import UNKNOWN, Identity, Moment
from soulgit.core.layout import PLAIN
from soulgit.errors import BusyError, HomeNotFound, NotAHome, SoulgitError
from soulgit.git import Head, Repository
from soulgit.git.repository import refuse_bare
from soulgit.working import Working, look, refuse_sparse

if TYPE_CHECKING:
    from soulgit.landing import Ground

Clock = Callable[[], Moment]

WAIT_SECONDS = 5.0
"""How long a writer waits for another one, or for a lock of git's, before it is busy."""


def system_clock() -> Moment:
    """Return the present moment in the local zone."""
    return Moment.of(datetime.now().astimezone())


class Home:
    """A directory with bootstrap files and, once it is written to, a repository of its own.

    Open it once and pass it to every function, from any thread. It reads no clock but
    the one it is given, and waits at most `wait_seconds` for other writers.
    """

    def __init__(self, path: str, clock: Clock, wait_seconds: float, durable: bool) -> None:
        self.path = path
        self.clock = clock
        self.wait_seconds = wait_seconds
        self.durable = durable
        self._mutex = threading.RLock()
        self._repository: Repository | None = None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Clock = system_clock,
        wait_seconds: float = WAIT_SECONDS,
        durable: bool = True,
    ) -> Home:
        """Open a directory; raises HomeNotFound where there is none that can be entered.

        With `durable` false a write is not synced before it is acknowledged.
        """
        text = os.fsdecode(path)
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise HomeNotFound("the path of a home must be UTF-8 without NUL")
        if not os.path.isdir(text):
            what = "is a file, not a directory" if os.path.exists(text) else "does not exist"
            raise HomeNotFound(f"{text or '(an empty path)'} {what}", path=text)
        home = cls(os.path.realpath(text), clock, wait_seconds, durable)
        disk.names(home.path)
        refuse_bare(home.path)
        if home.is_home:
            home._repository = Repository.open(home.path, durable=durable)
        return home

    @property
    def is_home(self) -> bool:
        """Whether the directory has a repository of its own."""
        return self._repository is not None or os.path.lexists(os.path.join(self.path, ".git"))

    @property
    def repository(self) -> Repository:
        """The home's repository; raises NotAHome where it has none."""
        if self._repository is None:
            self._repository = Repository.open(self.path, durable=self.durable)
        return self._repository

    def forget_repository(self) -> None:
        """Forget a repository that was taken away again."""
        self._repository = None

    @property
    def state_dir(self) -> str:
        """Soulgit's own directory in the git directory that linked homes share."""
        return os.path.join(self.repository.common_dir, "soulgit")

    @property
    def index_path(self) -> str:
        """The path of the home's own index."""
        return os.path.join(self.repository.git_dir, "index")

    def look(self) -> Working:
        """Read the bootstrap files on disk; raises where a sparse checkout hides one."""
        if not self.is_home:
            return look(self.path)
        with self.reading() as repository:
            tip = repository.head().tip
            tree = repository.commit(tip).tree if tip else None
            # Whose memory files were all taken away still has the layout they had.
            known = personas.tree_layout(repository, tree) if tree else PLAIN
            working = look(self.path, known)
            refuse_sparse(repository, working, tree)
        return working

    @contextmanager
    def reading(self) -> Iterator[Repository]:
        """Hold the repository for this thread while it is read."""
        with self._mutex:
            yield self.repository

    def companion(self, working: Working) -> Identity:
        """Return the identity under which the companion itself writes."""
        fallback = os.path.basename(self.path)
        return Identity.companion(personas.companion_name(working.contents, fallback))

    def head(self) -> Head:
        """Return where HEAD is; for a directory that is no home yet, an unborn main."""
        with self._mutex:
            return self.repository.head() if self.is_home else Head("refs/heads/main", None)

    def is_doctor_token(self, message: str) -> bool:
        """Whether a whole message, outer white space aside, is the home's doctor token."""
        from soulgit.core import token  # who only reads is spared it

        souls = (soulfile.frontmatter_values(composition.decode(s)) for s in self._soul_files())
        values = next((values for values in souls if token.KEY in values), {})
        return token.matches(values, message)

    def hear(self, message: str) -> bool:
        """Freeze the home when a message is its doctor token; return whether it was."""
        if not self.is_doctor_token(message):
            return False
        self.freeze(UNKNOWN, "the doctor token was heard")
        return True

    def freeze(self, by: Identity, reason: str | None = None) -> bool:
        """Stop all writing of memory, without waiting; return False where it is stopped already."""
        # One of its own, for a writer may hold the other.
        from soulgit import freeze as freezes

        repository = Repository.open(self.path, durable=self.durable)
        return freezes.freeze(repository, by, self.clock(), reason)

    def thaw(self, by: Identity, reason: str | None = None) -> bool:
        """Let memory be written again; return False where it was not stopped."""
        from soulgit import freeze as freezes

        with self.reading() as repository:
            return freezes.thaw(repository, by, self.clock(), reason)

    def _soul_files(self) -> Iterator[bytes]:
        """Yield the soul file on disk, then HEAD's: an emergency has no use for errors."""
        with contextlib.suppress(SoulgitError):
            yield disk.read(self.path, "SOUL.md").data
        with contextlib.suppress(SoulgitError):
            repository = Repository.open(self.path)
            tip = repository.head().tip
            yield (repository.read(repository.commit(tip).tree, "SOUL.md") if tip else None) or b""

    def heal(self) -> bool:
        """End what a dead writer left, unless another writer is at work just now."""
        if not self.is_home or not self._has_intent():
            return False
        try:
            with self.writing(wait_seconds=0):
                return True
        except BusyError:
            return False

    def is_being_written(self) -> bool:
        """Whether a living writer holds the lock just now."""
        path = os.path.join(self.state_dir, "lock")
        if not os.path.exists(path):
            return False
        try:
            with lockfile.held(path, 0, lambda: BusyError(f"{self.path} is busy", lock=path)):
                return False
        except BusyError:
            return True

    def heal_now(self) -> None:
        """End what a dead writer left and take its temporary files away; waits for a living one."""
        with self.writing():
            pass

    def has_dead_intent(self) -> bool:
        """Whether a writer died at its work and nobody has ended it yet."""
        return self._has_intent() and not self.is_being_written() and self._has_intent()

    def _has_intent(self) -> bool:
        """Whether a writer, dead or alive, said what it is about to do."""
        if not disk.begins_otherwise(os.path.join(self.state_dir, "intent"), b"-"):
            return False  # as nearly always, and then nothing more is imported
        from soulgit import intent as intents

        return intents.read(self.state_dir) is not None

    def ground(self) -> Ground:
        """Return where writes to the home land."""
        from soulgit.landing import Ground

        return Ground(self.path, self.repository, self.index_path, self.wait_seconds, self.durable)

    @contextmanager
    def writing(
        self, wait_seconds: float | None = None, *, while_frozen: bool = False
    ) -> Iterator[Ground]:
        """Hold the writer lock of the repository, with nothing left half done.

        In a frozen home what is half done stays so, but for who repairs it `while_frozen`.
        Linked homes of one repository share the lock. Raises BusyError after a bounded wait.
        """
        from soulgit import freeze as freezes
        from soulgit import landing

        ground = self.ground()
        path = os.path.join(ground.state_dir, "lock")
        wait = self.wait_seconds if wait_seconds is None else wait_seconds
        with self._mutex:
            self._make_state_dir(ground)
            with lockfile.held(path, wait, lambda: self._busy(path, ground)):
                try:
                    if while_frozen or freezes.state(self.repository) is None:
                        landing.heal(ground)
                    else:
                        landing.sweep(ground)
                    yield ground
                finally:
                    ground.repository.incoming.drop()

    def _make_state_dir(self, ground: Ground) -> None:
        """Make soulgit's own directory, but never a git directory that went away."""
        if not os.path.exists(os.path.join(ground.repository.git_dir, "HEAD")):
            self.forget_repository()
            raise NotAHome(f"the repository of {self.path} is gone", path=self.path)
        if directories.make_directory(ground.state_dir) and self.durable:
            disk.sync_directory(ground.repository.common_dir)

    def _busy(self, path: str, ground: Ground) -> BusyError:
        from soulgit import intent as intents

        intent = intents.read(ground.state_dir)
        holder = f"process {intent.pid}" if intent else "another writer"
        return BusyError(f"{self.path} is busy: {holder} holds {path}", lock=path)


AnyHome = Home | str | os.PathLike[str]
"""An opened home, or the path of one."""


def as_home(home: AnyHome) -> Home:
    """Return an opened home as it is, and open a path."""
    return home if isinstance(home, Home) else Home.open(home)


def is_doctor_token(home: AnyHome, message: str) -> bool:
    """Whether a whole message, outer white space aside, is a home's doctor token."""
    return as_home(home).is_doctor_token(message)
