"""An interrupt between any two lines of a call: rows are never fitted twice, and nothing acknowledged is lost.

Every line of the package counts, not those of one file. `Play` keeps what was acknowledged and compares it with
what the visible fits saw.
"""

import linecache
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import fliphat
from dense_twin import POLICIES
from fliphat import FLIPHAT, Iht, Store
from fliphat.policies import CopyError, StoreError
from fliphat.policies.engine import turn
from fliphat.policies.engine.lifecycle import Life, Phase
from policy_model import DIM, Fits, without_syncs

# A file whose opening was interrupted is closed by the interpreter, with a warning.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PACKAGE = str(Path(fliphat.__file__).parent)
FIRST, GROWTH = 3, 2


class Interrupt(BaseException):
    """Stands for KeyboardInterrupt, which pytest would take for its own."""


class Lines:
    """Counts the package's lines as they are run, and raises before one of them: where a handler could run.

    Leaving a `with` block is traced as its first line once more. No handler runs there: the interpreter looks
    for signals after calls, at the beginning of functions and at the end of loops.
    """

    def __init__(self, stop=None):
        self.seen, self.stop, self.entered = [], stop, set()

    def leaves_a_with(self, frame):
        place = (id(frame), frame.f_lineno)
        if not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
            return False
        left = place in self.entered
        self.entered ^= {place}
        return left

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line" and not self.leaves_a_with(frame):
            self.seen.append(frame.f_code.co_name)
            if len(self.seen) - 1 == self.stop:
                sys.settrace(None)
                raise Interrupt
        return self


def traced(call, stop=None):
    """Run a call; the lines it ran, and whether it was cut off before line `stop`."""
    lines = Lines(stop)
    sys.settrace(lines)
    try:
        call()
    except Interrupt:
        return lines.seen, True
    finally:
        sys.settrace(None)
    return lines.seen, False


class Play:
    """A policy that is reopened or loaded where it can't go on, and what it acknowledged."""

    def __init__(
        self,
        directory,
        monkeypatch,
        *,
        stored,
        sparse=False,
        durability="batch",
        ids=False,
        policy="FLIPHAT",
    ):
        self.ids, self.kind = ids, POLICIES[policy]
        self.directory, self.stored, self.durability = directory, stored, durability
        self.wrap = sp.csr_array if sparse else np.asarray
        self.fits = Fits(monkeypatch)
        without_syncs(monkeypatch)
        self.number, self.played = 0, {}
        self.acknowledged = set()  # numbers whose reward was taken
        self.doubtful = set()  # numbers that the interrupted call was about
        self.visible = {}
        self.policy = self.open()

    def open(self):
        return self.kind(
            dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, first_episode=FIRST, fit=Iht(growth=GROWTH),
            store=Store(self.directory / "store" if self.stored else None, durability=self.durability),
        )  # fmt: skip

    def reopen(self):
        """Go on with whatever is left, as an operator would."""
        self.policy.close()
        if (self.directory / "store").exists():
            try:
                self.policy = self.open()
                return
            except StoreError as error:
                if "handed over" not in str(error):
                    raise
        self.policy = self.kind.load(self.directory / "file")

    def contexts(self, number):
        """Contexts whose every arm is the same row, which tells the round."""
        return self.wrap(np.full((2, DIM), float(number), np.float32))

    def select(self):
        self.number += 1
        # Ids that no round had before: each is written down before its round is.
        arms = [f"a{self.number}", f"b{self.number}"] if self.ids else None
        decision = self.policy.select(
            self.contexts(self.number), user=self.number, key=self.number, arms=arms
        )
        self.played[self.number] = decision
        assert arms is None or decision.arm in arms
        return self.number, decision

    def one(self):
        number, decision = self.select()
        if self.policy.update(decision, float(number)):
            self.acknowledged.add(number)
        self.look()

    def look(self):
        """What anybody can see of estimates must stay as it is."""
        for facts in self.policy.history:
            value = facts.estimate.values.tolist()
            assert self.visible.setdefault(facts.episode, value) == value, "released twice"
        estimate = self.policy.estimate.values.tolist()
        # Before the first release FLIPHAT shows no coefficient, PrivateLinear zeros.
        assert not any(estimate) or estimate in self.visible.values(), "an estimate that no episode released"

    def go_on(self, rounds):
        for _ in range(rounds):
            try:
                self.one()
            except (StoreError, CopyError):
                self.doubtful.add(self.number)
                self.reopen()
                self.look()

    def check(self, forgotten=()):
        """Each visible estimate is one fit's; the fits saw every acknowledged reward, at its own row."""
        learned = []
        for episode, value in self.visible.items():
            (seen,) = [one[1] for one in self.fits.of(episode) if one[2].values.tolist() == value]
            X, y, present = seen
            assert np.array_equal(X[present, 0], y[present]), "a reward at another round's row"
            learned += y[present].astype(int).tolist()
        assert len(learned) == len(set(learned)), "learned from twice"
        open_codes = self.policy._engine.episode.codes
        still_open = {int(code) for code in open_codes[np.isfinite(open_codes)]}
        self.learned = learned
        lost = self.acknowledged - set(learned) - still_open - set(forgotten)
        assert not lost, "acknowledged and lost"


def release(play):
    play.select()


def plain_select(play):
    play.select()


def update(play):
    play.doubtful.add(play.number)
    play.policy.update(play.waiting, float(play.number))


def forget(play):
    play.policy.forget()


def forget_user(play):
    play.policy.forget(user=2)  # one of the episode's rounds: see `Play.select`


def cancel(play):
    play.policy.cancel(play.played[2])


def save(play):
    play.policy.save(play.directory / "file")


#: What is interrupted, how many rounds are played before it, and functions whose every line is tried.
ACTIONS = {
    "release": (
        release,
        3,
        {"turn", "move", "_claim", "_fit", "_ask", "_show", "_close", "_go_on", "append"},
    ),
    "select": (plain_select, 4, {"append", "append_rounds", "_append"}),
    "select_by_id": (plain_select, 4, {"_code", "keep", "arm_ids", "_named"}),
    "update": (update, 4, {"update"}),
    "forget": (forget, 4, {"forget", "_empty", "emptied"}),
    "forget_user": (forget_user, 2, {"forget", "_empty", "empty"}),
    "cancel": (cancel, 2, {"cancel", "empty"}),
    "save": (save, 4, {"save", "hand_over", "_detach", "seal", "close"}),
}


def prepared(directory, monkeypatch, action, **options):
    directory.mkdir()
    play = Play(directory, monkeypatch, ids=action == "select_by_id", **options)
    play.go_on(ACTIONS[action][1])
    if action == "update":
        play.waiting = play.select()[1]
    return play


def run(play, action, stop):
    """Interrupt the action before line `stop`, go on, and check; what it ran, and whether it was cut off."""
    before = set(play.acknowledged)
    lines, cut = traced(lambda: ACTIONS[action][0](play), stop)
    play.look() if play.policy._engine is not None else None
    play.go_on(14)
    forgotten = {"forget": before, "forget_user": {2}, "cancel": {2}}.get(action, ())
    play.check(forgotten)
    for number, decision in play.played.items():
        # A retry of any round that was answered gets the same decision, its arm's id included.
        contexts, arms = play.contexts(0), ["x", "y"] if play.ids else None
        assert play.policy.select(contexts, user=number, key=number, arms=arms) == decision
    if action in ("forget_user", "cancel") and not cut:
        assert 2 not in play.learned and not (play.fits.of(0)[0][1][0] == 2).any(), "not forgotten"
    left = list(play.directory.glob("*.partial"))
    assert not left, "a partial file stays"
    play.policy.close()
    return lines, cut


def stops(lines, every_line_of, limit):
    """Some of the lines, evenly, and all of those in the functions that matter most."""
    if limit is None:
        return range(len(lines))
    even = {int(i) for i in np.linspace(0, len(lines) - 1, limit)}
    return sorted(even | {i for i, name in enumerate(lines) if name in every_line_of})


#: Arms of FLIPHAT may be ids of a round; those of PrivateLinear are its own.
ON_BOTH = [
    (action, name)
    for name in POLICIES
    for action in ACTIONS
    if (action, name) != ("select_by_id", "PrivateLinear")
]


def interrupt_everywhere(tmp_path, monkeypatch, action, limit, **options):
    play = prepared(tmp_path / "dry", monkeypatch, action, **options)
    lines, cut = run(play, action, None)
    assert not cut and len(lines) > 10
    for stop in stops(lines, ACTIONS[action][2], limit):
        run(prepared(tmp_path / str(stop), monkeypatch, action, **options), action, stop)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(("action", "policy"), ON_BOTH)
def test_a_call_cut_off_before_some_lines(tmp_path, monkeypatch, action, policy, stored):
    sparse, limit = action.startswith("forget"), 8 if policy == "FLIPHAT" else 3
    interrupt_everywhere(tmp_path, monkeypatch, action, limit, stored=stored, sparse=sparse, policy=policy)


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(("action", "policy"), ON_BOTH)
def test_a_call_cut_off_before_every_line(tmp_path, monkeypatch, action, policy, stored, sparse):
    interrupt_everywhere(tmp_path, monkeypatch, action, None, stored=stored, sparse=sparse, policy=policy)


def test_an_over_limit_round_that_was_cut_off_leaves_no_mark(monkeypatch):
    # The next person's round takes the same place: their reward must count.
    fits, stop, cut, marked = Fits(monkeypatch), 0, True, 0
    while cut:
        policy = FLIPHAT(dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, first_episode=3, fit=Iht(growth=2))
        policy.update(policy.select(np.ones((2, DIM)), user="a"), 1.0)
        _, cut = traced(lambda p=policy: p.select(np.ones((2, DIM)), user="a"), stop)
        happened = policy.rounds == 2  # cut off after it counted, or not at all
        while policy.rounds < 3:
            assert policy.update(policy.select(np.ones((2, DIM)), user=f"b{policy.rounds}"), 2.0)
        policy.select(np.ones((2, DIM)), user="c")
        assert fits.calls[-1][1][2].tolist() == [True, not happened, True], stop
        marked += cut and not happened
        stop += 1
    assert marked > 20


def test_the_checks_can_fail(tmp_path, monkeypatch):
    # The controls: an estimate shown and then computed again, a reward lost, a reward at another's row.
    play = prepared(tmp_path / "a", monkeypatch, "select", stored=False)
    play.visible[0] = [99.0]
    with pytest.raises(AssertionError, match="released twice"):
        play.look()
    play = prepared(tmp_path / "b", monkeypatch, "release", stored=False)
    play.policy._engine.episode.codes[1] = np.nan
    play.go_on(5)
    with pytest.raises(AssertionError, match="acknowledged and lost"):
        play.check()
    play = prepared(tmp_path / "c", monkeypatch, "release", stored=False)
    play.policy._engine.episode.codes[:2] = play.policy._engine.episode.codes[1::-1].copy()
    play.go_on(5)
    with pytest.raises(AssertionError, match="another round's row"):
        play.check()


def test_the_check_would_see_a_second_release(monkeypatch):
    # The control: an estimate that was shown, of an episode that is not closed, is computed again.
    fits = Fits(monkeypatch)
    policy = FLIPHAT(dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, first_episode=3, fit=Iht(growth=2))
    for number in (1, 2, 3):
        policy.update(policy.select(np.full((2, DIM), float(number))), float(number))

    def forgets(own, episode):  # as if nothing had been kept of the release
        episode.life = Life(Phase.FULL)
        raise Interrupt

    monkeypatch.setitem(turn._STEPS, Phase.SHOWN, forgets)
    with pytest.raises(Interrupt):
        policy.select(np.ones((2, DIM)))
    first = policy.estimate.values.tolist()
    with pytest.raises(Interrupt):
        policy.select(np.ones((2, DIM)))
    assert policy.estimate.values.tolist() != first and len(fits.of(0)) == 2


@pytest.mark.parametrize("stored", [False, True])
def test_a_save_whose_sealing_fails_leaves_no_live_object(tmp_path, monkeypatch, stored):
    from fliphat.policies.engine import files

    play = prepared(tmp_path / "a", monkeypatch, "save", stored=stored)

    def fail(_):
        raise OSError("no space")

    with monkeypatch.context() as patch:
        if stored:
            patch.setattr("fliphat.policies.engine.snapshot.os.rename", lambda *_: fail(None))
        else:
            patch.setattr(files, "sync_directory", fail)
        with pytest.raises(OSError, match="no space"):
            save(play)
    with pytest.raises(CopyError):
        play.select()
    play.go_on(10)
    play.check()


# Real signals


def after(seconds, call):
    """Run a call that a timer's signal interrupts after some seconds; whether it did."""

    def handler(*_):
        raise Interrupt

    old = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    return False


def hit_by_signals(tmp_path, monkeypatch, action, times, stored):
    """Interrupt an action again and again at random moments of its usual time; how many were hit."""
    import time

    rng, hits, usual = np.random.default_rng(0), 0, []
    for i in range(times):
        play = prepared(tmp_path / f"{i}", monkeypatch, action, stored=stored)
        if i < 5:
            began = time.perf_counter()
            ACTIONS[action][0](play)
            usual.append(time.perf_counter() - began)
            play.policy.close()
            continue
        before = set(play.acknowledged)
        cut = after(
            max(1e-6, rng.random() * 1.2 * float(np.median(usual))), lambda p=play: ACTIONS[action][0](p)
        )
        hits += cut
        play.look() if play.policy._engine is not None else None
        play.go_on(14)
        play.check()
        assert before <= play.acknowledged and not list(play.directory.glob("*.partial"))
        play.policy.close()
    return hits


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("action", ["save", "release"])
def test_some_calls_hit_by_real_signals(tmp_path, monkeypatch, action, stored):
    hit_by_signals(tmp_path, monkeypatch, action, 15, stored)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("action", ["save", "release"])
def test_a_thousand_calls_hit_by_real_signals(tmp_path, monkeypatch, action, stored):
    hits = tries = 0
    while hits < 1000:  # how often a timer hits a call is the machine's affair
        place = tmp_path / str(tries)
        place.mkdir()
        hits += hit_by_signals(place, monkeypatch, action, 400, stored)
        tries += 400
        assert tries <= 16_000
    print(f"{action}, stored={stored}: {hits} of about {tries} interrupted")
