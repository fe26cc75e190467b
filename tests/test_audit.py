"""A long history audited: blame, search and undo against a replay in plain Python."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from soulgit import (
    Home,
    blame,
    capturing,
    forking,
    homes,
    memory,
    restoring,
    search,
    settling,
    undoing,
    updating,
)
from soulgit.adoption import Hand
from soulgit.core.actor import Identity, Moment
from soulgit.core.layout import HERMES, PLAIN, TARGETS, Layout, Target
from soulgit.core.reading import Batch
from soulgit.core.record import Record
from soulgit.errors import ChangedSince
from soulgit.memory import Told
from soulgit.restoring import What
from soulgit.undoing import Which
from tests.support import Git, git_home, put

PAT = Identity("Pat", "pat@example.org")
WORDS = [
    "tea", "chess", "river", "cellar", "Tuesday", "invoice", "garden", "violin", "harbour",
    "winter", "lamp", "bread", "letter", "engine", "orchard", "silver", "meadow", "kettle",
    "window", "copper", "ladder", "sparrow", "ticket", "anchor",
]  # fmt: skip
PLACES = ("Oslo", "Rome", "Lima", "Kyiv", "Bern", "Accra")
NAMES: Mapping[Target, str] = {"self": "MEMORY.md", "user": "USER.md"}
BATCH_SIZE = 20

Texts = list[tuple[int, str]]
"""The live memories of a file, in order: which fact, and how it is worded now."""


# The replay: what a history means, in plain Python


@dataclass(frozen=True)
class Wording:
    """A fact as it read for a while, and the commit that worded it so."""

    fact: int
    text: str
    id: str
    session: str | None = None
    source: str | None = None
    action: str | None = None


@dataclass(frozen=True)
class Went:
    """A wording that is no more: in which commit it went, and what it became."""

    target: Target
    wording: Wording
    id: str
    became: str | None


@dataclass(frozen=True)
class Did:
    """What one commit did to one memory file, told by facts."""

    before: Texts
    added: Texts
    removed: Texts
    reworded: list[tuple[int, str, str]]

    def __str__(self) -> str:
        return f"added {self.added}, removed {self.removed}, reworded {self.reworded}"


@dataclass
class Replay:
    """Every memory of a branch, those that are gone too, and what each commit did."""

    live: dict[Target, list[Wording]] = field(default_factory=lambda: {"self": [], "user": []})
    went: list[Went] = field(default_factory=list)
    last: dict[int, str] = field(default_factory=dict)
    actions: dict[str, tuple[Target, Did]] = field(default_factory=dict)
    states: dict[str, dict[Target, list[Wording]]] = field(default_factory=dict)

    def texts(self, target: Target) -> Texts:
        return [(one.fact, one.text) for one in self.live[target]]

    def commit(
        self,
        target: Target,
        after: Texts,
        made: Wording,
        *,
        worded_by: Mapping[int, str] | None = None,
    ) -> None:
        """Note a commit: the file after it, and the one whose id and trailers new words bear."""
        had = {one.fact: one for one in self.live[target]}
        texts = dict(after)
        did = Did(self.texts(target), [], [], [])
        for fact, one in had.items():
            if texts.get(fact) != one.text:
                self.went.append(Went(target, one, made.id, texts.get(fact)))
            if fact not in texts:
                did.removed.append((fact, one.text))
        now = []
        for fact, text in after:
            self.last[fact] = text
            old = had.get(fact)
            if old is not None and old.text == text:
                now.append(old)
                continue
            if old is None:
                did.added.append((fact, text))
            else:
                did.reworded.append((fact, old.text, text))
            worder = made.id if worded_by is None else worded_by[fact]
            now.append(Wording(fact, text, worder, made.session, made.source, made.action))
        self.live[target] = now
        if made.action not in (None, "reread"):
            self.actions[made.id] = target, did
        self.states[made.id] = {name: list(known) for name, known in self.live.items()}

    def undone(self, commit_id: str) -> tuple[Target, Texts, list[str]]:
        """Return what taking an action back leaves, and the texts that were changed since."""
        target, did = self.actions[commit_id]
        work = self.texts(target)
        in_the_way = []
        for fact, old, new in did.reworded:
            now = dict(work).get(fact)
            if now == new:
                work = [(one, old if one == fact else text) for one, text in work]
            elif now not in (None, old):
                in_the_way.append(now)
        for fact, text in did.added:
            now = dict(work).get(fact)
            if now == text:
                work.remove((fact, text))
            elif now is not None:
                in_the_way.append(now)
        for fact, text in did.removed:
            now = dict(work).get(fact)
            if now is None:
                work.insert(_place(did.before, work, fact), (fact, text))
            elif now != text:
                in_the_way.append(now)
        return target, work, in_the_way


def _place(before: Texts, work: Texts, fact: int, *, as_it_was: bool = False) -> int:
    """Return where a fact comes back: behind the nearest one before it that is there.

    An undo knows it in its words of now; a restore, which compares two texts, as it was.
    """
    facts = [one for one, _ in work]
    at = [one for one, _ in before].index(fact)
    for known in reversed(before[:at]):
        if known in work or (known[0] in facts and not as_it_was):
            return facts.index(known[0]) + 1
    return 0


# The history: random, the same for the same seed


class Clock:
    """A clock that goes on by one second each time somebody looks at it."""

    def __init__(self) -> None:
        self.now = 1_800_000_000

    def __call__(self) -> Moment:
        self.now += 1
        return Moment(self.now)


@dataclass
class Story:
    """A home, what happens to it, and the replay of that."""

    home: Home
    git: Git
    layout: Layout
    random: random.Random
    replay: Replay
    session: str = "s0"
    soul: int = 0
    counted: list[int] = field(default_factory=lambda: [100])
    clobbered: list[str] = field(default_factory=list)

    def path(self, target: Target) -> Path:
        return self.git.path / self.layout.memory_path(target)

    def told(self) -> Told:
        return Told(source=f"chat:{self.random.randrange(12)}", session=self.session)

    def target(self) -> Target:
        return "user" if self.random.random() < 0.3 else "self"

    def new_text(self) -> tuple[int, str]:
        self.counted[0] += 1
        fact = self.counted[0]
        words = self.random.choices(WORDS, k=6)
        if fact % 7 == 0:
            words[2] += "\n "
        return fact, f"{' '.join(words)} in {self.place()} #{fact}"

    def place(self) -> str:
        self.counted[0] += 1
        return f"{self.random.choice(PLACES)}{self.counted[0]}"

    def some(self, target: Target) -> Wording | None:
        known = self.replay.live[target]
        return self.random.choice(known) if known else None

    def renamed(self, one: Wording) -> tuple[str, str]:
        """Return the unique end of a fact's text, and another one."""
        end = one.text[one.text.index(" in ") :]
        return end, f" in {self.place()} #{one.fact}"

    # what happens

    def add(self) -> None:
        target, told, (fact, text) = self.target(), self.told(), self.new_text()
        done = memory.add(self.home, text, target=target, told=told)
        self.note(target, [*self.replay.texts(target), (fact, text)], done.revision, "add", told)

    def replace(self) -> None:
        target, told = self.target(), self.told()
        one = self.some(target)
        if one is None:
            return
        old, new = self.renamed(one)
        whole = one.text.replace(old, new)
        words = (one.text, whole) if self.random.random() < 0.5 else (old, new)
        done = memory.replace(self.home, *words, target=target, told=told)
        self.note(target, self.worded(target, one, whole), done.revision, "replace", told)

    def remove(self) -> None:
        target, told = self.target(), self.told()
        one = self.some(target)
        if one is None:
            return
        done = memory.remove(self.home, one.text, target=target, told=told)
        self.note(target, self.without(target, one), done.revision, "remove", told)

    def reword_by_hand(self) -> None:
        target, told = self.target(), self.told()
        one = self.some(target)
        if one is None:
            return
        text = self.write_reworded(target, one)
        self.note(target, self.worded(target, one, text), self.capture(told), "capture", told)

    def reword_by_hand_before_an_add(self) -> None:
        target = self.target()
        one = self.some(target)
        if one is None:
            return
        text = self.write_reworded(target, one)
        told, (fact, new) = self.told(), self.new_text()
        done = memory.add(self.home, new, target=target, told=told)
        before = self.git("rev-parse", "HEAD~1")
        self.note(target, self.worded(target, one, text), before, "capture", Told())
        self.note(target, [*self.replay.texts(target), (fact, new)], done.revision, "add", told)

    def clobber(self) -> None:
        """A host that knows one memory only writes the whole file."""
        target, told = self.target(), self.told()
        one = self.some(target)
        if one is None or len(self.replay.live[target]) < 2:
            return
        bullet, end = ("- ", "\n") if self.layout is PLAIN else ("", "")
        self.path(target).write_bytes(f"{bullet}{one.text}{end}".encode())
        revision = self.capture(told)
        self.note(target, [(one.fact, one.text)], revision, "capture", told)
        self.clobbered.append(revision)

    def undo_a_clobber(self) -> None:
        if self.clobbered:
            self.undo(self.clobbered.pop())

    def undo_something(self) -> None:
        known = list(self.replay.actions)
        self.undo(self.random.choice(known[-30:] if self.random.random() < 0.7 else known))

    def undo(self, commit_id: str) -> None:
        target, after, in_the_way = self.replay.undone(commit_id)
        brought = [pair for pair in after if pair not in self.replay.texts(target)]
        is_last = all(
            self.replay.last[fact] == text or fact in dict(self.replay.texts(target))
            for fact, text in brought
        )
        if in_the_way or after == self.replay.texts(target) or not is_last:
            return
        done = undoing.undo(self.home, Which(revision=commit_id), PAT)
        self.note(target, after, done.revision, "undo", Told())

    def restore_an_entry(self) -> None:
        gone = [
            one
            for one in self.replay.went
            if one.became is None
            and self.replay.last[one.wording.fact] == one.wording.text
            and all(one.wording.fact not in dict(self.replay.texts(name)) for name in TARGETS)
        ]
        if not gone:
            return
        one = self.random.choice(gone)
        at = self.git("rev-parse", f"{one.id}^")
        before = self.replay.states[at][one.target] if at in self.replay.states else None
        if before is None:
            return
        known = [(each.fact, each.text) for each in before]
        pair = (one.wording.fact, one.wording.text)
        after = self.replay.texts(one.target)
        after.insert(_place(known, after, pair[0], as_it_was=True), pair)
        done = restoring.restore(self.home, at, PAT, What(one.target, pair[1]))
        self.note(one.target, after, done.revision, "restore", Told())

    def settle_and_go_on(self) -> None:
        self.edit_soul()
        settling.decide(self.home, "continue", PAT)

    def settle_and_read_anew(self) -> None:
        """Every memory is re-read under a new persona, but for each fifth, which stays."""
        self.edit_soul()
        before = self.git("rev-parse", "HEAD")
        done = updating.update(self.home, felt, PAT, batch_size=BATCH_SIZE)
        commits = self.git("rev-list", "--reverse", f"persona/{done.number}", f"^{before}")
        rereads = commits.splitlines()[1:]
        worded_by, after, place = {}, {}, 0
        for target in TARGETS:
            after[target] = []
            for fact, text in self.replay.texts(target):
                worded_by[fact] = rereads[place // BATCH_SIZE]
                after[target].append((fact, felt_one(text)))
                place += 1
        for target in TARGETS:
            made = Wording(0, "", done.revision, action="reread")
            self.replay.commit(target, after[target], made, worded_by=worded_by)

    # how it is done

    def edit_soul(self) -> None:
        self.soul += 1
        put(self.git.path, {"SOUL.md": f"You are Ava, the {self.soul}th.\n"})

    def capture(self, told: Told) -> str:
        record = Record("capture", origin="hand", session=told.session, source=told.source)
        revision = capturing.capture(self.home, Hand(PAT, record))
        assert revision is not None
        return revision

    def write_reworded(self, target: Target, one: Wording) -> str:
        old, new = self.renamed(one)
        path = self.path(target)
        assert path.read_bytes().count(old.encode()) == 1
        path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
        return one.text.replace(old, new)

    def worded(self, target: Target, one: Wording, text: str) -> Texts:
        known = self.replay.texts(target)
        return [(fact, text if fact == one.fact else old) for fact, old in known]

    def without(self, target: Target, one: Wording) -> Texts:
        return [pair for pair in self.replay.texts(target) if pair[0] != one.fact]

    def note(
        self, target: Target, after: Texts, revision: str | None, action: str, told: Told
    ) -> None:
        assert revision is not None, action
        made = Wording(0, "", revision, told.session, told.source, action)
        self.replay.commit(target, after, made)

    def forked(self, directory: Path) -> Story:
        """A sibling that has come by the same memories."""
        forking.fork(self.home, "twin", PAT, keep_memories=True, directory=str(directory))
        return Story(
            Home.open(directory, clock=Clock(), durable=False),
            Git(directory),
            self.layout,
            random.Random(2),
            copy.deepcopy(self.replay),
            session="of the twin",
            soul=100,
            counted=[50_000],
        )


def felt(persona: str, batch: Batch) -> Sequence[str]:
    return [felt_one(text) for text in batch]


def felt_one(text: str) -> str:
    return text if int(text.rpartition("#")[2]) % 5 == 0 else f"fondly {text}"


USUAL: Sequence[tuple[Callable[[Story], None], int]] = (
    (Story.add, 46),
    (Story.replace, 18),
    (Story.remove, 9),
    (Story.undo_something, 13),
    (Story.reword_by_hand, 6),
    (Story.reword_by_hand_before_an_add, 3),
    (Story.restore_an_entry, 5),
)


def begun(directory: Path, layout: Layout) -> Story:
    """A home that somebody kept with plain git before, with two memories."""
    first = [(1, "bread and tea in Oslo1 #1"), (2, "a lamp in the cellar in Rome2 #2")]
    source = "\n§\n".join(text for _, text in first)
    if layout is PLAIN:
        source = "# Mine\n\n" + "".join(f"- {text}\n" for _, text in first) + "\n## Later\n"
    git = git_home(directory, {"SOUL.md": "You are Ava.\n", layout.memory_path("self"): source})
    clock = Clock()
    homes.init(str(directory), identifier="1", identify=lambda _: PAT, clock=clock)
    home = Home.open(directory, clock=clock, durable=False)
    story = Story(home, git, layout, random.Random(1), Replay())
    by_hand = git("rev-list", "--max-parents=0", "HEAD")
    story.replay.commit("self", first, Wording(0, "", by_hand))
    return story


def told(story: Story, count: int) -> Iterator[int]:
    """Let a number of things happen; stop in between, where the audit may look."""
    special = {
        count * 10 // 100: Story.clobber,
        count * 30 // 100: Story.clobber,
        count * 31 // 100: Story.undo_a_clobber,
        count * 35 // 100: Story.settle_and_go_on,
        count * 80 // 100: Story.settle_and_read_anew,
        count * 92 // 100: Story.clobber,
        count * 93 // 100: Story.undo_a_clobber,
    }
    for number in range(count):
        story.session = f"session {number * 40 // count}"
        steps, weights = zip(*USUAL, strict=True)
        step = special.get(number) or story.random.choices(steps, weights)[0]
        step(story)
        if number in (count // 4, count // 2, count * 3 // 4):
            yield number


# The audit


def blamed(home: Home, at: str | None = None) -> list[tuple[object, ...]]:
    return [
        (one.target, one.text, one.id, one.session, one.source, one.action)
        for one in blame.blame(home, at=at)
    ]


def replayed(state: Mapping[Target, list[Wording]]) -> list[tuple[object, ...]]:
    return [
        (target, one.text, one.id, one.session, one.source, one.action)
        for target in TARGETS
        for one in state[target]
    ]


def found(home: Home, word: str) -> set[tuple[object, ...]]:
    hits = search.search(home, word, ever=True)
    times = [hit.came.time.seconds for hit in hits]
    assert times == sorted(times, reverse=True)
    told = [
        (hit.came.target, hit.came.text, hit.came.id)
        + ((hit.gone.id, hit.gone.became) if hit.gone else (None, None))
        for hit in hits
    ]
    assert len(told) == len(set(told))
    return set(told)


def ever(replay: Replay, word: str) -> set[tuple[object, ...]]:
    gone = [(one.target, one.wording, one.id, one.became) for one in replay.went]
    there = [(name, one, None, None) for name in TARGETS for one in replay.live[name]]
    return {
        (target, one.text, one.id, gone_id, became)
        for target, one, gone_id, became in (*gone, *there)
        if word.casefold() in one.text.casefold()
    }


def read(data: bytes | None, layout: Layout) -> list[str]:
    """Read the memories of a file as these stories write them: no code of soulgit's does it."""
    source = (data or b"").decode()
    if layout is HERMES:
        return source.split("\n§\n") if source else []
    texts: list[str] = []
    for line in source.splitlines():
        if line.startswith("- "):
            texts.append(line[2:])
        elif line.startswith("  "):
            texts[-1] += f"\n{line}"
    return texts


def would_be(story: Story, commit_id: str) -> str | None:
    """Take an action back, dry; return how that differs from the replay, None where it does not."""
    target, after, in_the_way = story.replay.undone(commit_id)
    name, what = NAMES[target], f"undo {commit_id[:7]} ({story.replay.actions[commit_id][1]})"
    try:
        done = undoing.undo(story.home, Which(revision=commit_id), PAT, dry_run=True)
    except ChangedSince as error:
        told = sorted(error.facts["notes"])  # type: ignore[call-overload]
        wanted = sorted(f"{target}: {text}" for text in in_the_way)
        return None if told == wanted else f"{what}: in the way {told}, not {wanted}"
    if in_the_way:
        return f"{what}: {in_the_way} was changed since, and it says nothing: {sorted(done.files)}"
    if done.files.keys() - {name}:
        return f"{what}: {sorted(done.files)} would change"
    data = done.files[name] if name in done.files else _bytes(story.path(target))
    texts, wanted_texts = read(data, story.layout), [text for _, text in after]
    if texts == wanted_texts:
        return None
    more, less = set(texts) - set(wanted_texts), set(wanted_texts) - set(texts)
    return f"{what}: has {more} and not {less}, or another order"


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def differences(story: Story, seed: int, sample: int | None = None) -> list[str]:
    """All in which soulgit and the replay disagree of a home as it stands."""
    chance = random.Random(seed)
    told = []
    if blamed(story.home) != replayed(story.replay.live):
        told.append("blame now")
    for at in chance.sample(list(story.replay.states), 8):
        if blamed(story.home, at) != replayed(story.replay.states[at]):
            told.append(f"blame at {at}")
    for word in (*chance.sample(WORDS, 3), "oslo", "fondly"):
        has, wanted = found(story.home, word), ever(story.replay, word)
        told += [f"search {word}: found {one}" for one in sorted(map(str, has - wanted))]
        told += [f"search {word}: missing {one}" for one in sorted(map(str, wanted - has))]
    for commit_id in chance.sample(list(story.replay.actions), sample or len(story.replay.actions)):
        told += filter(None, [would_be(story, commit_id)])
    return told


def audit(directory: Path, layout: Layout, count: int, sample: int | None = None) -> list[str]:
    """Tell a story and audit it, on the way too, and a twin that parts from it half way.

    In the end every action is taken back, dry, or a sample where there are very many.
    """
    story = begun(directory / "ava", layout)
    twin: Story | None = None
    wrong: list[str] = []
    for number in told(story, count):
        wrong += [f"after {number}: {line}" for line in differences(story, number, 6)]
        if twin is None and number >= count // 2:
            twin = story.forked(directory / "twin")
            for _ in told(twin, 24):
                pass
    assert twin is not None
    wrong += [f"in the end: {line}" for line in differences(story, count, sample)]
    wrong += [f"of the twin: {line}" for line in differences(twin, count, 10)]
    for each in (story, twin):
        assert {name: read(_bytes(each.path(name)), layout) for name in TARGETS} == {
            name: [text for _, text in each.replay.texts(name)] for name in TARGETS
        }
        times = [int(line) for line in each.git("log", "--format=%ct").splitlines()]
        assert len(times) > len(each.replay.actions)
        each.git.agrees()
    return wrong


LAYOUTS = pytest.mark.parametrize("layout", [PLAIN, HERMES], ids=lambda layout: str(layout.name))


@LAYOUTS
def test_a_history_of_150_actions_is_as_its_replay(tmp_path: Path, layout: Layout) -> None:
    wrong = audit(tmp_path, layout, 150)
    assert not wrong, "\n".join([f"{len(wrong)} differences", *wrong[:30]])


@pytest.mark.slow
@LAYOUTS
def test_a_history_of_2000_actions_is_as_its_replay(tmp_path: Path, layout: Layout) -> None:
    wrong = audit(tmp_path, layout, 2_000, 400)
    assert not wrong, "\n".join([f"{len(wrong)} differences", *wrong[:30]])
