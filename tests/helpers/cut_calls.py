"""Public calls that are cut off before a line, or killed at a durable point, and what must hold after them.

A *line* is one of the package; it is cut at its first and at its last visit. A *kill* is a copy of the files at
that moment: nothing that Python would still do on its way out happens to the copy. `Play` keeps what was
acknowledged and shown, and compares it with what the fits saw.
"""

import contextlib
import copy
import linecache
import os
import shutil
import sqlite3
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import fliphat
from dense_twin import POLICIES
from fliphat import Iht, Store
from fliphat.fit.dense import Dense
from fliphat.fit.iht.fit import IhtFit
from fliphat.policies import CopyError, SnapshotError, StoreError
from fliphat.policies.engine import files
from fliphat.policies.store.inspect import inspect_path
from policy_model import DIM, Fits

PACKAGE = str(Path(fliphat.__file__).parent)
FIRST, GROWTH = 2, 1.5  # episodes of 2, 3, 5 rounds
#: Rounds after a call that was cut off: the episode that was open is released with them.
AFTER = 6


class Interrupt(BaseException):
    """Stands for KeyboardInterrupt, which pytest would take for its own."""


class Lines:
    """Counts visits of the package's lines, and raises before one of them: where a handler could run.

    Leaving a `with` block is traced as its first line once more. No handler runs there: the interpreter looks
    for signals after calls, at the beginning of functions and at the end of loops.
    """

    def __init__(self, stop=None):
        self.visits, self.stop, self.entered = Counter(), stop, set()

    def leaves_a_with(self, frame):
        place = (id(frame), frame.f_lineno)
        if not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
            return False
        left = place in self.entered
        self.entered ^= {place}
        return left

    def __call__(self, frame, event, _):
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE) or (self.stop is not None and name != self.stop[0]):
            return None
        if event == "line" and not self.leaves_a_with(frame):
            line = (name, frame.f_lineno)
            self.visits[line] += 1
            if self.stop == (*line, self.visits[line]):
                sys.settrace(None)
                raise Interrupt
        return self


def traced(call, stop=None):
    """Run a call; the visits of each line, and whether it was cut off at `stop`: file, line, visit."""
    lines = Lines(stop)
    sys.settrace(lines)
    try:
        call()
    except Interrupt:
        return lines.visits, True
    finally:
        sys.settrace(None)
    return lines.visits, False


def points(visits):
    """The first and the last visit of every line."""
    return sorted({(*line, visit) for line, count in visits.items() for visit in (1, count)})


class WatchedFits(Fits):
    """The real fits, and what each saw."""

    def __init__(self, monkeypatch):
        super().__init__()
        monkeypatch.setattr(IhtFit, "run", self.around(IhtFit.run))
        monkeypatch.setattr(Dense, "run_totals", self.around(Dense.run_totals))

    def around(self, real):
        def watched(fit, plan, rows, rewards, present, *more):
            result = real(fit, plan, rows, rewards, present, *more)
            known = result[0] if isinstance(result, tuple) else result
            seen = np.array(rows)[:, :DIM], rewards.copy(), present.copy()
            self.calls.append((plan.episode, seen, known.estimate))
            return result

        return watched


class Play:
    """A policy that is reopened or loaded where it can't go on, and what it acknowledged."""

    def __init__(
        self, directory, fits, *, where="sqlite", sparse=False, ids=False, policy="FLIPHAT", url=None
    ):
        self.directory, self.fits, self.where, self.url = directory, fits, where, url
        self.ids, self.kind = ids, POLICIES[policy]
        self.wrap = sp.csr_array if sparse else np.asarray
        self.number, self.played, self.batch = 0, {}, None
        self.decided = {}  # also those of batches, which have no key
        self.rounds = 0  # that were acknowledged
        self.doubtful = 0  # that a call which was cut off may have played
        self.acknowledged = set()  # numbers whose reward was taken
        self.erased = set()  # numbers that may have been erased
        self.visible = {}
        self.policy, self.killed = None, False

    def branch(self, directory):
        """The same play with the files in a directory, and without a process."""
        other = copy.copy(self)
        other.directory, other.policy, other.killed = directory, None, True
        for name in ("played", "decided", "acknowledged", "erased", "visible"):
            setattr(other, name, copy.copy(getattr(self, name)))
        return other

    @property
    def stored(self):
        return self.where != "memory"

    @property
    def store(self):
        if self.where == "postgres":
            return Store(self.url)
        place, witness = self.directory / "store", self.directory / "witness"
        return Store(place, witness=witness) if self.stored else Store()

    def open(self):
        return self.kind(
            dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, first_episode=FIRST, fit=Iht(growth=GROWTH),
            store=self.store,
        )  # fmt: skip

    def reopen(self):
        """Go on with whatever is left, as an operator would; False if nothing is left of a policy in memory."""
        if self.policy is not None:
            self.policy.close()
        if self.stored or not self.rounds:
            try:
                self.policy = self.kind.open(self.store) if self.rounds else self.open()
                return True
            except StoreError as error:
                if "handed over" not in str(error):
                    raise
        for name in ("file", "again"):
            if (self.directory / name).exists():
                try:
                    self.load(name)
                except SnapshotError as error:
                    # Of a process that was killed after it had loaded the file: gone with it, as promised.
                    assert self.killed and "loaded before" in str(error), error
                    continue
                return True
        return False

    def load(self, name):
        self.policy = self.kind.load(self.directory / name)
        self.where = "memory"

    def alive(self, act):
        """Do something with a policy; one that can't go on is opened again first. False if nothing is left."""
        try:
            act(self.policy)
        except (StoreError, CopyError):
            if not self.reopen():
                return False
            act(self.policy)
        return True

    def contexts(self, number):
        """Contexts whose every arm is the same row, which tells the round."""
        return self.wrap(np.full((2, DIM), float(number), np.float32))

    def select(self, number=None):
        """Play a round, or one that may have been played again."""
        if number is None:
            self.number += 1
        number = number or self.number
        # Ids that no round had before: each is written down before its round is.
        arms = [f"a{number}", f"b{number}"] if self.ids else None
        decision = self.policy.select(self.contexts(number), user=number, key=number, arms=arms)
        if number not in self.played:
            self.rounds += 1
        self.played[number] = self.decided[number] = decision
        assert arms is None or decision.arm in arms
        return decision

    def select_batch(self):
        """Play two rounds, or one that ends an episode."""
        count = min(2, self.policy.remaining)
        numbers = [self.number + 1 + i for i in range(count)]
        self.number += count
        each = [self.contexts(number) for number in numbers]
        X = np.stack(each if self.kind is POLICIES["FLIPHAT"] else [one[0] for one in each])
        self.batch = numbers, self.policy.select_batch(X, users=numbers)
        self.decided |= dict(zip(numbers, self.batch[1], strict=True))
        self.rounds += count

    def reward(self, number):
        if self.policy.update(self.played[number], float(number)):
            self.acknowledged.add(number)

    def one(self):
        self.select()
        self.reward(self.number)
        self.look()

    def look(self):
        """What anybody can see of estimates must stay as it is."""
        self.seen([facts.estimate.values.tolist() for facts in self.policy.history])
        estimate = self.policy.estimate.values.tolist()
        # Before the first release FLIPHAT shows no coefficient, PrivateLinear zeros.
        assert not any(estimate) or estimate in self.visible.values(), "an estimate that no episode released"

    def seen(self, estimates):
        for episode, value in enumerate(estimates):
            assert self.visible.setdefault(episode, value) == value, "released twice"

    def inspect(self):
        """Look at whatever lies on disk."""
        if self.where == "postgres" or (self.directory / "store").exists():
            try:
                found = inspect_path(self.url or self.directory / "store")
            except StoreError:
                assert not self.rounds  # a new store is no store before its file has its name
                return
            last, value = len(found["history"]) - 1, found["estimate"]["values"]
            assert not any(value) or self.visible.setdefault(last, value) == value, "released twice"

    def go_on(self, rounds=AFTER):
        """Play more rounds; False if nothing is left to play with."""
        for _ in range(rounds):
            try:
                self.one()
            except (StoreError, CopyError):
                self.doubtful += 1
                if not self.reopen():
                    return False
                self.look()
        return True

    def check_shown(self):
        """Each visible estimate is one fit's, of rewards at their own rows; no row is in two."""
        learned = []
        for episode, value in self.visible.items():
            X, y, present = [one[1] for one in self.fits.of(episode) if one[2].values.tolist() == value][-1]
            assert np.array_equal(X[present, 0], y[present]), "a reward at another round's row"
            learned += y[present].astype(int).tolist()
        assert len(learned) == len(set(learned)), "learned from twice"
        self.learned = set(learned)

    def check(self):
        """Nothing that was acknowledged is lost."""
        self.check_shown()
        pending = set(self.policy.pending)
        for number in self.acknowledged - self.learned - self.erased:
            decision = self.decided[number]
            assert decision.episode >= len(self.policy.history), "acknowledged and lost"
            assert decision.id not in pending, "acknowledged and lost"
        assert self.rounds <= self.policy.rounds <= self.rounds + self.doubtful, "rounds lost or made up"
        # What a process that was killed left is overwritten by the next `save` to that path.
        assert self.killed or not list(self.directory.glob("*.partial")), "a partial file stays"
        for number, decision in self.played.items():
            # A retry of any round that was answered gets the same decision, its arm's id included.
            contexts, arms = self.contexts(0), ["x", "y"] if self.ids else None
            assert self.policy.select(contexts, user=number, key=number, arms=arms) == decision


class Call:
    """A public call: what is played before it, how it is made, and how it is made again."""

    def __init__(
        self, name, before, make, again=None, policies=tuple(POLICIES), opens=False, fits=Fits, sparse=False
    ):
        self.name, self.before, self.make, self.again = name, before, make, again or make
        self.policies, self.opens, self.fits, self.sparse = policies, opens, fits, sparse

    def prepare(self, directory, fits, **options):
        directory.mkdir(exist_ok=True)
        play = Play(directory, fits, ids=self.name == "select with ids", sparse=self.sparse, **options)
        if self.before is not None:
            play.policy = play.open()
            self.before(play)
        return play


def _rounds(count):
    return lambda play: play.go_on(count)


def _played_twice(play):
    """One round with a reward and one without, in an episode of three."""
    play.go_on(3)
    play.select()


def _batch_waits(play):
    play.go_on(2)
    play.select_batch()


def _select(play):
    play.doubtful += 1
    play.select()
    play.doubtful -= 1


def _select_again(play):
    """Its key makes a retry safe: whatever came of the call before, this is the same round."""
    before = play.policy.rounds
    assert before in (play.rounds, play.rounds + 1), "rounds lost or made up"
    play.select(play.number)
    if play.stored:  # in memory the round may count a line before its key does
        play.doubtful = 0  # also if the call before was not cut off at all
        assert play.policy.rounds == play.rounds


def _batch(play):
    play.doubtful += 2
    play.select_batch()
    play.doubtful -= 2


def _update(play):
    play.policy.update(play.played[play.number], float(play.number))


def _update_again(play):
    try:
        assert play.policy.update(play.played[play.number], float(play.number))
    except ValueError as error:
        assert "second" in str(error)
    play.acknowledged.add(play.number)


def _rewards(play):
    numbers, decisions = play.batch
    play.policy.update_batch(decisions, [float(number) for number in numbers])


def _rewards_again(play):
    """Those that came before are refused, the others taken."""
    _rewards(play)
    play.acknowledged |= set(play.batch[0])


def _cancel(play):
    play.erased.add(play.number)
    assert play.policy.cancel(play.played[play.number])


def _forget(play):
    play.erased |= set(play.acknowledged)
    play.policy.forget()


def _forget_user(play):
    play.erased.add(3)
    play.policy.forget(user=3)


def _add(play):
    play.policy.add_arm("new")


def _add_again(play):
    if "new" not in play.policy.arms:
        _add(play)
    assert play.policy.arms.count("new") == 1


def _save(play):
    play.policy.save(play.directory / "file")


def _saved(play):
    play.go_on(3)
    _save(play)


def _load(play):
    play.policy = None
    play.load("file")


def _close(play):
    play.policy.close()


def _closed(count):
    def before(play):
        play.go_on(count)
        play.policy.close()

    return before


def _open(play):
    play.policy = None
    play.policy = play.open()


SPARSE, LINEAR = ("FLIPHAT",), ("PrivateLinear",)
CALLS = {
    call.name: call
    for call in (
        Call("select", _rounds(3), _select, _select_again),
        Call("select that releases", _rounds(2), _select, _select_again),
        Call("select that fits", _rounds(2), _select, _select_again, fits=WatchedFits),
        Call("select with ids", _rounds(3), _select, _select_again, SPARSE),
        Call("select_batch", _rounds(3), _batch),
        Call("select_batch that releases", _rounds(2), _batch),
        Call("update", _played_twice, _update, _update_again),
        Call("update_batch", _batch_waits, _rewards, _rewards_again),
        Call("cancel", _rounds(4), _cancel),
        Call("forget", _rounds(4), _forget),
        Call("forget of a user", _rounds(4), _forget_user),
        Call("forget of sparse rows", _rounds(4), _forget_user, policies=SPARSE, sparse=True),
        Call("add_arm", _rounds(3), _add, _add_again, LINEAR),
        Call("save", _rounds(3), _save),
        Call("save of a full episode", _rounds(2), _save),
        Call("load", _saved, _load, opens=True),
        Call("close", _rounds(3), _close),
        Call("opening", _closed(3), _open, opens=True),
        Call("opening of a new store", None, _open, opens=True),
    )
}


def same_call(play, call):
    """Make the call again; where the policy can't, after opening it again."""
    if call.opens:
        return opened(play)
    if call.name.startswith("save") and (play.directory / "file").exists():
        return play.reopen()  # it came through
    return opened(play) and play.alive(lambda _: call.again(play))


def save_and_load(play, call):
    if not opened(play) or play.where == "postgres":  # a database is not saved to a file
        return play.policy is not None

    def hand_over(policy):
        policy.save(play.directory / "again")

    if not play.alive(hand_over):
        return False
    play.load("again")
    return True


def close_and_reopen(play, call):
    return opened(play) and play.reopen()


def inspect(play, call):
    play.inspect()
    return opened(play)


def opened(play):
    """Open a store or a file whose opening was cut off, or which a process left."""
    return play.policy is not None or play.reopen()


FOLLOWING = {
    "the same call": same_call,
    "save and load": save_and_load,
    "close and reopen": close_and_reopen,
    "inspect": inspect,
}


def cut_at(directory, fits, call, stop, following, **options):
    """Cut a call off, do what follows, and check; whether it was cut off."""
    play = call.prepare(directory, fits, **options)
    _, cut = traced(lambda: call.make(play), stop)
    finish(play, call, following)
    shutil.rmtree(directory)
    return cut


def finish(play, call, following):
    """Do what follows a call that was cut off, play on, and check everything."""
    if play.policy is not None and play.policy._engine is not None:
        play.look()
    left = FOLLOWING[following](play, call) and play.go_on()
    play.inspect()
    if left:
        play.check()
    else:
        play.check_shown()
        # In memory a policy goes with its process, also after it was loaded from a file.
        assert not play.stored or (play.killed and call.name == "load"), "a store is lost"
    if play.policy is not None:
        play.policy.close()


class Kills:
    """Copies the files of a play before and after every sync, rename and COMMIT, while `play` is set."""

    def __init__(self, place):
        self.play, self.place, self.taken = None, place, []

    def take(self, what):
        play, target = self.play, self.place / f"{len(self.taken)}"
        shutil.copytree(play.directory, target)
        if play.policy is not None and play.policy._engine is not None:
            play.look()  # what others can see at this moment stays
        self.taken.append((what, play.branch(target)))

    def around(self, real, what):
        def watched(*given, **more):
            if self.play is None:
                return real(*given, **more)
            self.take(f"before {what}")
            result = real(*given, **more)
            self.take(f"after {what}")
            return result

        return watched

    @contextlib.contextmanager
    def watching(self, monkeypatch):
        kills, connect = self, sqlite3.connect

        def watched_connect(*given, factory=sqlite3.Connection, **more):
            class Connection(factory):
                def execute(self, sql, *given):
                    run = super().execute
                    ends = sql == "COMMIT" or "checkpoint" in sql
                    return (kills.around(run, sql) if ends else run)(sql, *given)

            return connect(*given, factory=Connection, **more)

        with monkeypatch.context() as patch:
            for name in ("sync", "sync_directory"):
                patch.setattr(files, name, self.around(getattr(files, name), name))
            for name in ("rename", "replace", "link", "unlink"):
                patch.setattr(os, name, self.around(getattr(os, name), name))
            patch.setattr(sqlite3, "connect", watched_connect)
            yield self
