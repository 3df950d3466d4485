"""Every public call, cut off before every line it runs and killed at every durable point, and then followed by each
of four calls: nothing is released twice, nothing acknowledged is lost."""

import gc
import shutil

import pytest

from cut_calls import CALLS, FOLLOWING, Kills, cut_at, finish, points, traced
from fliphat.policies import StoreError
from fliphat.policies.engine import lifecycle, snapshot, turn
from fliphat.policies.engine.engine import Engine
from fliphat.policies.engine.lifecycle import Life, Phase
from fliphat.policies.store.sqlite import SqliteStore
from policy_model import without_syncs

# A file whose opening was interrupted is closed by the interpreter, with a warning.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CASES = [
    (name, policy, where)
    for name, call in CALLS.items()
    for policy in call.policies
    for where in ("memory", "sqlite")
    if (name, where) != ("opening", "memory")
]
#: Of each case in the ordinary suite: one in so many points, and what follows it in turn.
ONE_IN = 40


def lines_of(tmp_path, fits, call, **options):
    """The points of a call; run twice, because caches are filled the first time."""
    for place in ("first", "second"):
        play = call.prepare(tmp_path / place, fits, **options)
        visits, _ = traced(lambda play=play: call.make(play))
        play.policy.close()
    return points(visits)


def chosen(found, sample):
    """Points with what follows them: all of both, or one in so many points and one follow-up each."""
    if sample is None:
        return [(stop, following) for stop in found for following in FOLLOWING]
    return [(stop, list(FOLLOWING)[i % 4]) for i, stop in enumerate(found[::sample])]


def cut_everywhere(tmp_path, monkeypatch, case, sample):
    name, policy, where = case
    without_syncs(monkeypatch)
    call, options = CALLS[name], {"policy": policy, "where": where}
    fits = call.fits(monkeypatch)
    found = lines_of(tmp_path, fits, call, **options)
    cuts = 0
    for i, (stop, following) in enumerate(chosen(found, sample)):
        try:
            cuts += cut_at(tmp_path / str(i), fits, call, stop, following, **options)
        except Exception as error:
            raise AssertionError(f"{name} cut off at {stop}, then {following}") from error
    return len(found), cuts


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_call_cut_off_before_some_lines(tmp_path, monkeypatch, case):
    found, cuts = cut_everywhere(tmp_path, monkeypatch, case, ONE_IN)
    assert found > 20 and cuts > 0


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_call_cut_off_before_every_line(tmp_path, monkeypatch, case):
    found, cuts = cut_everywhere(tmp_path, monkeypatch, case, None)
    print(f"{case}: {found} points, {cuts} cuts")
    assert cuts > 0.9 * 4 * found


#: Calls that write something: what is killed is a process that would have gone on.
KILLED = [
    case for case in CASES if case[2] == "sqlite" or case[0] in ("save", "save of a full episode", "load")
]


def killed_everywhere(tmp_path, monkeypatch, case, sample):
    """Kill a call before and after every sync, rename and COMMIT; how many such moments there are."""
    name, policy, where = case
    without_syncs(monkeypatch)
    call = CALLS[name]
    fits = call.fits(monkeypatch)
    (tmp_path / "moments").mkdir()
    with Kills(tmp_path / "moments").watching(monkeypatch) as kills:
        play = kills.play = call.prepare(tmp_path / "play", fits, policy=policy, where=where)
        call.make(play)
        kills.play = None
    play.policy.close()
    pairs = [(one, following) for one in kills.taken for following in FOLLOWING]
    for (what, moment), following in pairs[::sample]:
        shutil.rmtree(play.directory)  # a hand-over's record names the very path of its file
        shutil.copytree(moment.directory, play.directory)
        try:
            finish(moment.branch(play.directory), call, following)
        except Exception as error:
            raise AssertionError(f"{name} killed {what}, then {following}") from error
    return len(kills.taken), len(pairs[::sample])


@pytest.mark.parametrize("case", KILLED, ids=str)
def test_a_call_killed_at_some_durable_points(tmp_path, monkeypatch, case):
    moments, _ = killed_everywhere(tmp_path, monkeypatch, case, 7)
    assert moments >= (2 if case[0] != "close" else 0)


@pytest.mark.slow
@pytest.mark.parametrize("case", KILLED, ids=str)
def test_a_call_killed_at_every_durable_point(tmp_path, monkeypatch, case):
    moments, kills = killed_everywhere(tmp_path, monkeypatch, case, 1)
    print(f"{case}: {moments} moments, {kills} kills")


@pytest.mark.parametrize("policy", CALLS["opening"].policies)
def test_the_lock_of_an_opening_that_was_cut_off_is_free_at_once(tmp_path, monkeypatch, policy):
    """Without the garbage collector: whoever caught the interrupt opens the store again in the next line."""
    without_syncs(monkeypatch)
    call, options = CALLS["opening"], {"policy": policy, "where": "sqlite"}
    fits = call.fits(monkeypatch)
    found = lines_of(tmp_path, fits, call, **options)
    play = call.prepare(tmp_path / "play", fits, **options)
    gc.collect()
    gc.disable()
    try:
        for stop in found[::7]:
            _, cut = traced(lambda: call.make(play), stop)
            if not cut:
                play.policy.close()
            try:
                play.kind.open(play.store).close()
            except StoreError as error:
                raise AssertionError(f"cut off at {stop}") from error
    finally:
        gc.enable()
    assert len(found) > 200


# The controls


def forgets_what_it_showed(engine, episode, again=[]):  # noqa: B006 - what was opened again stays known
    """Open an episode again that everybody has seen, once."""
    if episode in again:
        return turn._close(engine, episode)
    again.append(episode)
    engine.history.pop()
    episode.life = Life(Phase.FULL)


BROKEN = {
    "rows are fitted again after they were shown": (
        *("select that releases", "memory", "released"),
        lambda patch: patch.setitem(turn._STEPS, Phase.SHOWN, forgets_what_it_showed),
    ),
    "save does not complete a turn": (
        *("select that releases", "memory", ""),
        lambda patch: patch.setattr(Engine, "settle", lambda engine, act: None),
    ),
    "memory goes on behind the disk": (
        *("select", "sqlite", ""),
        lambda patch: (
            patch.setattr(SqliteStore, "__exit__", lambda *_: None)
            or patch.setattr(Engine, "require_alive", lambda engine: None)
        ),
    ),
    "a load that is cut off has consumed its file": (
        *("load", "memory", "loaded before"),
        lambda patch: patch.setattr(
            snapshot.Loading,
            "consumed",
            property(lambda file: False, lambda file, value: None),
            raising=False,
        ),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_call_is_found(tmp_path, monkeypatch, name):
    call, where, told, break_it = BROKEN[name]
    break_it(monkeypatch)
    with pytest.raises(AssertionError, match="cut off at") as caught:
        cut_everywhere(tmp_path, monkeypatch, (call, "FLIPHAT", where), 3)
    assert told in str(caught.value.__cause__)


def test_a_call_that_is_acknowledged_before_it_is_durable_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(SqliteStore, "_done", lambda store: None)
    with pytest.raises(AssertionError, match="killed before") as caught:
        killed_everywhere(tmp_path, monkeypatch, ("select that releases", "FLIPHAT", "sqlite"), 1)
    assert "lost" in str(caught.value.__cause__)


# In a database, a sample

IN_DATABASE = (
    "select",
    "select that releases",
    "select_batch that releases",
    "update",
    "forget of a user",
    "opening",
)


def cut_in_database(tmp_path, monkeypatch, server, name, count):
    """Cut a call at some of its lines, evenly; whoever fits holds no lease that must be waited for."""
    monkeypatch.setattr(lifecycle, "LEASE", 0.05)
    monkeypatch.setattr(lifecycle, "HEARTBEAT", 0.01)
    call = CALLS[name]
    fits, options = call.fits(monkeypatch), {"where": "postgres"}
    play = call.prepare(tmp_path / "dry", fits, url=server.new(), **options)
    visits, _ = traced(lambda: call.make(play))
    play.policy.close()
    found = points(visits)
    cuts = 0
    for i, stop in enumerate(found[:: max(1, len(found) // count)]):
        following = list(FOLLOWING)[i % 4]
        try:
            cuts += cut_at(tmp_path / str(i), fits, call, stop, following, url=server.new(), **options)
        except Exception as error:
            raise AssertionError(f"{name} cut off at {stop}, then {following}") from error
    return len(found), cuts


@pytest.mark.parametrize("name", IN_DATABASE)
def test_a_call_to_a_database_cut_off_before_some_lines(tmp_path, monkeypatch, server, name):
    found, cuts = cut_in_database(tmp_path, monkeypatch, server, name, 4)
    assert found > 100 and cuts >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_DATABASE)
def test_a_call_to_a_database_cut_off_before_more_lines(tmp_path, monkeypatch, server, name):
    found, cuts = cut_in_database(tmp_path, monkeypatch, server, name, 100)
    print(f"{name}: {found} points, {cuts} cuts")
    assert cuts > 80
