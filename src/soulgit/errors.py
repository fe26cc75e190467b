"""Every error a caller of soulgit can meet.

    SoulgitError
    ├── UsageError              2   the words of a call do not say what to do
    │   ├── AmbiguousHome           a home named both by a path and by a name
    │   ├── InvalidTime             a time that is no ISO 8601
    │   └── InvalidArgument         an argument outside what is accepted
    ├── RefusedError            1   understood, and not done
    │   ├── HomeNotFound            no such directory
    │   ├── NotAHome                a directory without a repository of its own
    │   ├── InsideRepository        a directory in another repository's working tree
    │   ├── UnsafeFile              a link that leads out, a device, a pipe, UTF-16, a filter
    │   ├── InvalidText             empty text, NUL, a lone surrogate, the entry delimiter
    │   ├── EventUnreadable         what a host told its hook is no event
    │   ├── TextNotFound            nothing in the memory file reads like this
    │   ├── TextAmbiguous           several entries read like this
    │   ├── SearedRefused           it would change an entry that never changes again
    │   ├── LintRefused             a file with errors is not saved
    │   ├── EditRefused             an edited file is not saved
    │   ├── NothingPending          there is nothing to decide
    │   ├── AnswerRefused           a reader's answer loses, adds, duplicates or empties an entry
    │   ├── TokenExposed            a doctor token would be committed as it is
    │   ├── ChangesUncommitted      a home has changes that no commit has yet
    │   ├── RevisionNotFound        no commit by that name
    │   ├── RepositoryRefused       a repository that cannot be read or written as it stands
    │   │   └── ObjectMissing       a shallow or partial clone, or a damaged repository
    │   ├── BranchRefused           detached, on another branch, or on one that is no companion's
    │   └── StorageFailed           the disk is full, read-only or failing
    ├── UndecidedError          3   a person must decide first
    │   ├── HomeFrozen              the emergency stop is on
    │   ├── PersonaPending          a persona edit is not settled
    │   ├── SearedChanged           a seared entry was changed or dropped by hand
    │   ├── ChangedSince            what would be taken back was changed since
    │   ├── NotConfirmed            what cannot be undone, and nobody has said yes to it
    │   └── ConflictPending         a merge or rebase in progress, unmerged bootstrap files
    ├── BusyError               4   another writer holds the home
    ├── UnreachableError        5   a remote or model cannot be reached
    │   └── ReaderFailed            a reader ended with an error or took too long
    └── BugError               70   soulgit contradicts itself

An error's text is one sentence; `hint` is what to do about it; facts are attributes.
"""

from __future__ import annotations


class SoulgitError(Exception):
    """The root of the tree; `kind` is stable and meant for machines."""

    kind = "error"
    exit_code = 1
    default_hint = "see `soulgit --help`"

    def __init__(self, message: str, *, hint: str | None = None, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint
        self.facts = facts
        self.__dict__.update(facts)


class UsageError(SoulgitError):
    """The words of a call do not say what to do."""

    kind = "usage"
    exit_code = 2


class AmbiguousHome(UsageError):
    """One word names a directory here and a home under the root."""

    kind = "ambiguous-home"
    default_hint = "write ./NAME for the directory here, or the whole path of the other"


class InvalidTime(UsageError):
    """A time that is no ISO 8601."""

    kind = "invalid-time"
    default_hint = "write it like 2026-11-30, 2026-11-30T14:05 or 2026-11-30T14:05:00Z"


class InvalidArgument(UsageError):
    """An argument outside what is accepted."""

    kind = "invalid-argument"


class RefusedError(SoulgitError):
    """Understood, and not done."""

    kind = "refused"


class HomeNotFound(RefusedError):
    """No such directory, or none that can be entered."""

    kind = "home-not-found"
    default_hint = "`soulgit list` shows the homes under the root; `soulgit init` makes one"


class NotAHome(RefusedError):
    """A directory without a repository of its own."""

    kind = "not-a-home"
    default_hint = "`soulgit init` makes a directory a home"


class InsideRepository(RefusedError):
    """A directory in another repository's working tree, which soulgit does not write to."""

    kind = "inside-repository"
    default_hint = "`soulgit init` gives the directory a repository of its own"


class UnsafeFile(RefusedError):
    """A bootstrap file that cannot be read or written for what it is."""

    kind = "unsafe-file"
    default_hint = "put a regular file in its place"


class InvalidText(RefusedError):
    """A text that no memory can hold."""

    kind = "invalid-text"
    default_hint = "give a text of at least one visible character, in valid Unicode without NUL"


class EventUnreadable(RefusedError):
    """What a host told its hook is no event."""

    kind = "event-unreadable"
    default_hint = "hooks read the host's JSON on standard input; see `soulgit hook --help`"


class TextNotFound(RefusedError):
    """Nothing in the memory file reads like this."""

    kind = "text-not-found"
    default_hint = "`soulgit memory list HOME` shows what is there"


class TextAmbiguous(RefusedError):
    """Several entries read like this."""

    kind = "text-ambiguous"
    default_hint = "give more of the entry's text"


class SearedRefused(RefusedError):
    """It would change an entry that never changes again."""

    kind = "seared"
    default_hint = "leave that entry as it is; only a person can `soulgit unsear` it"


class LintRefused(RefusedError):
    """A file with errors is not saved."""

    kind = "lint"
    default_hint = "mend what is named, then save again"


class EditRefused(RefusedError):
    """An edited file is not saved."""

    kind = "edit-refused"
    default_hint = "look at the file as it is now, then edit it again"


class NothingPending(RefusedError):
    """There is nothing to decide."""

    kind = "nothing-pending"
    default_hint = "`soulgit status` shows how the home stands"


class AnswerRefused(RefusedError):
    """A reader's answer loses, adds, duplicates or empties an entry."""

    kind = "answer-refused"
    default_hint = "what was read is kept; run the command again, or with another reader"


class TokenExposed(RefusedError):
    """A doctor token would be committed as it is, and pushed with the home."""

    kind = "token-exposed"
    default_hint = (
        "`soulgit init HOME --hash-token` stores its hash, --keep-token keeps it as it is"
    )


class ChangesUncommitted(RefusedError):
    """A home has changes that no commit has yet."""

    kind = "changes-uncommitted"
    default_hint = "`soulgit capture HOME` or `git commit` records them, `git restore` drops them"


class RevisionNotFound(RefusedError):
    """No commit by that name."""

    kind = "revision-not-found"
    default_hint = "`soulgit log HOME` lists the revisions there are"


class RepositoryRefused(RefusedError):
    """A repository that cannot be read or written as it stands."""

    kind = "repository-refused"
    default_hint = "`git -C HOME fsck` and `git -C HOME status` say more"


class ObjectMissing(RepositoryRefused):
    """An object is not here: a shallow or partial clone, or a damaged repository."""

    kind = "object-missing"
    default_hint = (
        "`git fsck` says what is missing; a clone gets it by `git fetch --unshallow` or `--refetch`"
    )


class BranchRefused(RefusedError):
    """HEAD is detached, on another branch, or on one that is no companion's."""

    kind = "branch-refused"
    default_hint = "`git switch BRANCH` goes to the companion's branch"


class StorageFailed(RefusedError):
    """The disk is full, read-only or failing; nothing was changed."""

    kind = "storage-failed"
    default_hint = "make room or make the directory writable, then try again"


class UndecidedError(SoulgitError):
    """A person must decide first."""

    kind = "undecided"
    exit_code = 3


class HomeFrozen(UndecidedError):
    """The emergency stop is on: nothing writes memory until a person thaws the home."""

    kind = "frozen"
    default_hint = "a person can end it with `soulgit thaw HOME`"


class PersonaPending(UndecidedError):
    """A persona edit is not settled."""

    kind = "pending"
    default_hint = (
        "decide with `soulgit settle HOME`: --continue, --update, --fork NAME or --discard"
    )


class SearedChanged(UndecidedError):
    """A seared entry was changed or dropped by hand."""

    kind = "seared-changed"
    default_hint = "put it back, or run `soulgit unsear` with its text to let it change"


class ChangedSince(UndecidedError):
    """What would be taken back was changed since."""

    kind = "changed-since"
    default_hint = "`--keep` leaves these as they are, `--drop` takes them back all the same"


class NotConfirmed(UndecidedError):
    """What cannot be undone, and nobody has said yes to it."""

    kind = "not-confirmed"
    default_hint = "`--dry-run` shows what would change, `--yes` says yes"


class ConflictPending(UndecidedError):
    """A merge, rebase or the like is in progress, or bootstrap files are unmerged."""

    kind = "conflict"
    default_hint = "finish it with git, or take it back: `git merge --abort`, `git rebase --abort`"


class BusyError(SoulgitError):
    """Another writer holds the home and did not let go in time."""

    kind = "busy"
    exit_code = 4
    default_hint = "try again; a lock that no program holds may be deleted"


class UnreachableError(SoulgitError):
    """A remote or model cannot be reached."""

    kind = "unreachable"
    exit_code = 5
    default_hint = "check the address and the network, then run the command again"


class ReaderFailed(UnreachableError):
    """A reader ended with an error or took too long."""

    kind = "reader-failed"
    default_hint = "what was read is kept; run the command again to go on from there"


class BugError(SoulgitError):
    """soulgit contradicts itself."""

    kind = "bug"
    exit_code = 70
    default_hint = "please report it, with the command and what it printed"
