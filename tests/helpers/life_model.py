"""A small world in which all sequences of calls, cuts, kills and copies are searched.

The world knows what the engines and stores know of an episode, and asks :mod:`fliphat.policies.engine.lifecycle`
for every step, as they do. Each act below is one transaction or one step in memory: a call that is cut off is
one whose next act never comes, so interrupts and kills fall between any two of them.

What must hold in every state that can be reached (`broken`):

- a row is in one visible estimate at most;
- a row of an open episode, or of a saved file, is in no visible estimate;
- an acknowledged round is kept, or is in a committed estimate (where no copy of the store lost to another);
- the only copy of a store is never refused;
- a row that was forgotten in time is in no estimate that becomes visible (of a store without copies).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fliphat.policies.engine import lifecycle
from fliphat.policies.engine.lifecycle import Asked, Life, Phase, StepRefused

ROOM = 1  # rounds of an episode
LEFT = (-1, -1)  # what a witness holds once the policy went to a file


class Rules(NamedTuple):
    """What the calls do around the table of steps; every field is right as it stands."""

    workers: bool = False  # several processes at one store, with leases
    witness: bool = True
    witness_decides: bool = True
    witness_asked_at_save: bool = True
    save_leaves_witness: bool = True
    load_consumes: bool = True
    children_act: bool = False
    opening_finishes: bool = True  # what is committed stays committed
    handed_over_opens: bool = False
    forget_takes_back: bool = True
    rows_dropped: bool = True
    fence_grows: bool = True
    # How large the world may get: rows that are ever played; stores, live processes and saved files at once.
    most_rows: int = 2
    most_copies: int = 2
    most_processes: int = 2
    most_files: int = 1


class Copy(NamedTuple):
    """A store's durable contents; `memory` is a policy that was loaded from a file, gone with its process."""

    index: int = 0
    mark: int = 0
    rows: tuple[int, ...] = ()
    life: Life = Life()
    memory: bool = False
    refused: bool = False


class Process(NamedTuple):
    """A live process: the store it has open, its name as an owner, and the fit it holds in memory."""

    copy: int
    owner: str
    fence: int = 0
    fitted: tuple[int, tuple[int, ...]] | None = None
    child: bool = False


class World(NamedTuple):
    """Everything; equal worlds are visited once."""

    copies: tuple[Copy, ...] = (Copy(),)
    processes: tuple[Process, ...] = ()
    files: tuple[Copy, ...] = ()
    witness: tuple[int, int] = (0, 0)
    visible: frozenset[tuple[int, int]] = frozenset()  # (row, mark)
    committed: frozenset[int] = frozenset()
    acknowledged: frozenset[int] = frozenset()
    forgotten: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()  # with a policy in memory, whose process is gone
    marks: int = 0
    copied: bool = False


def broken(world: World) -> str | None:
    """Return which promise a state breaks."""
    seen: dict[int, set[int]] = {}
    for row, mark in world.visible:
        seen.setdefault(row, set()).add(mark)
    if any(len(marks) > 1 for marks in seen.values()):
        return "a row is in two visible estimates"
    open_phases = (Phase.OPEN, Phase.FULL, Phase.CLAIMED)
    fitted_again = {
        row
        for copy in world.copies
        if not copy.refused and copy.life.phase in open_phases and not (world.copied or copy.memory)
        for row in copy.rows
    } | {row for file in world.files for row in file.rows}
    if fitted_again & seen.keys():
        return "a row of a visible estimate will be fitted again"
    if not world.copied and world.forgotten & seen.keys():
        return "a forgotten row became visible"
    if not world.copied:
        kept = {row for place in (*world.copies, *world.files) for row in place.rows} | world.committed
        if world.acknowledged - world.forgotten - world.lost - kept:
            return "an acknowledged round is nowhere"
        if any(copy.refused and not copy.memory for copy in world.copies):
            return "the only copy is refused"
    return None


def free_name(world: World) -> str:
    """Return a name that no process has: one that shares its name would be taken for another."""
    return next(name for name in "abcd" if name not in {one.owner for one in world.processes})


def acts(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Yield every act that is possible, with the world after it."""
    for number, process in enumerate(world.processes):
        for name, after in _of_process(world, rules, number, process):
            if after is not None:
                yield f"{name} by {process.owner}", after
        yield f"kill {process.owner}", _killed(world, number)
    yield from _around(world, rules)


def _of_process(
    world: World, rules: Rules, number: int, process: Process
) -> Iterator[tuple[str, World | None]]:
    copy = world.copies[process.copy]
    life = copy.life
    if process.child and not rules.children_act:
        return
    played = len(world.acknowledged)
    if (
        not copy.refused
        and lifecycle.may("play", life)
        and len(copy.rows) < ROOM
        and played < rules.most_rows
    ):
        grown = copy._replace(rows=(*copy.rows, played))
        if len(grown.rows) == ROOM:
            grown = grown._replace(life=lifecycle.step(life, "fill"))
        yield "select", _with(world, process.copy, grown)._replace(acknowledged=world.acknowledged | {played})
    # A claim: its owner is alone where a store has one process.
    asked = Asked(owner=process.owner, now=1.0, lease=9.0, alone=not rules.workers)
    claimed = _stepped(life, "claim", asked)
    if claimed is not None and not (life.owner == process.owner and process.fence == life.fence):
        if not rules.fence_grows:
            claimed = claimed._replace(fence=1)
        mine = process._replace(fence=claimed.fence, fitted=None)
        yield "claim", _with(world, process.copy, copy._replace(life=claimed), number, mine)
    if lifecycle.may("fit", life) and life.fence == process.fence and process.fitted is None:
        mine = process._replace(fitted=(world.marks + 1, copy.rows))
        yield "fit", _with(world, process.copy, copy, number, mine)._replace(marks=world.marks + 1)
    if process.fitted is not None:
        done = _stepped(life, "commit", Asked(fence=process.fence, bits=process.fitted))
        mine = process._replace(fitted=None)
        if done is None:
            yield "late commit", _with(world, process.copy, copy, number, mine)
        else:
            after = _with(world, process.copy, copy._replace(life=done), number, mine)
            yield "commit", after._replace(committed=world.committed | set(process.fitted[1]))
    yield "tell the witness", _told(world, rules, process.copy)
    yield "hear the witness", _heard(world, rules, process.copy)
    shown = _stepped(life, "show", Asked())
    if shown is not None:
        yield "show", _seen(_with(world, process.copy, copy._replace(life=shown)), life.bits)
    over = _stepped(life, "close", Asked())
    if over is not None:
        rows = () if rules.rows_dropped else copy.rows
        full = Phase.FULL if len(rows) == ROOM else Phase.OPEN
        following = Copy(copy.index + 1, life.bits[0], rows, Life(full, fence=life.fence), copy.memory)
        yield "close", _with(world, process.copy, following)
    if copy.rows and lifecycle.may("empty", life) and not copy.refused:
        emptied = lifecycle.emptied(life) if rules.forget_takes_back else life
        gone = copy._replace(rows=tuple(-1 - row if row >= 0 else row for row in copy.rows), life=emptied)
        forgotten = world.forgotten | {row for row in copy.rows if row >= 0}
        yield "forget", _with(world, process.copy, gone)._replace(forgotten=forgotten)
    if not rules.workers and lifecycle.may("save", life) and len(world.files) < rules.most_files:
        yield "save", _saved(world, rules, process.copy)
    if len(world.processes) < rules.most_processes and not process.child:
        child = process._replace(child=True)
        copies = world.copies
        if copy.memory:  # a child has a memory of its own
            child, copies = child._replace(copy=len(copies)), (*copies, copy)
        yield "fork", world._replace(copies=copies, processes=(*world.processes, child))


def _around(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    for number, copy in enumerate(world.copies):
        busy = any(process.copy == number and not process.child for process in world.processes)
        opens = copy.life.phase is not Phase.HANDED_OVER or rules.handed_over_opens
        if (
            opens
            and not copy.memory
            and len(world.processes) < rules.most_processes
            and (rules.workers or not busy)
        ):
            life = copy.life
            if life.phase is Phase.HANDED_OVER:
                life = life._replace(phase=Phase.FULL if len(copy.rows) == ROOM else Phase.OPEN)
            if life.phase is Phase.COMMITTED and not rules.opening_finishes:
                life = life._replace(phase=Phase.FULL, bits=None)
            owner = free_name(world)
            opened = _with(world, number, copy._replace(life=life))
            fresh = Process(number, owner)
            yield f"open store {number}", opened._replace(processes=(*world.processes, fresh))
        if lifecycle.may("see", copy.life) and copy.life.bits is not None:
            yield f"inspect {number}", _seen(world, copy.life.bits)
        if rules.workers and copy.life.phase is Phase.CLAIMED and copy.life.until > 1.0:
            late = copy._replace(life=copy.life._replace(until=0.0))
            yield "a lease is over", _with(world, number, late)
        if rules.witness and not rules.workers and len(world.copies) < rules.most_copies and not copy.memory:
            yield f"copy store {number}", world._replace(copies=(*world.copies, copy), copied=True)
    for number, file in enumerate(world.files):
        if len(world.processes) < rules.most_processes and len(world.copies) < rules.most_copies + 1:
            files = world.files
            if rules.load_consumes:
                files = files[:number] + files[number + 1 :]
            loaded = world._replace(files=files, copies=(*world.copies, file))
            process = Process(len(world.copies), free_name(world))
            yield "load", loaded._replace(processes=(*world.processes, process))


def _stepped(life: Life, event: str, asked: Asked) -> Life | None:
    try:
        return lifecycle.step(life, event, asked)
    except StepRefused:
        return None


def _with(
    world: World, number: int, copy: Copy, process_number: int = -1, process: Process | None = None
) -> World:
    copies = (*world.copies[:number], copy, *world.copies[number + 1 :])
    if process is None:
        return world._replace(copies=copies)
    before, behind = world.processes[:process_number], world.processes[process_number + 1 :]
    return world._replace(copies=copies, processes=(*before, process, *behind))


def _seen(world: World, bits: tuple[int, tuple[int, ...]]) -> World:
    mark, rows = bits
    return world._replace(visible=world.visible | {(row, mark) for row in rows if row >= 0})


def _told(world: World, rules: Rules, number: int) -> World | None:
    """Move the witness; whoever asked may be gone before the answer is kept."""
    copy = world.copies[number]
    if copy.life.phase is not Phase.COMMITTED or not rules.witness or copy.memory:
        return None
    before, now = (copy.index, copy.mark), (copy.index + 1, copy.life.bits[0])
    return world._replace(witness=now) if world.witness == before else None


def _heard(world: World, rules: Rules, number: int) -> World | None:
    """Keep the witness's answer."""
    copy = world.copies[number]
    if copy.life.phase is not Phase.COMMITTED:
        return None
    before, now = (copy.index, copy.mark), (copy.index + 1, copy.life.bits[0])
    unasked = not rules.witness or copy.memory or not rules.witness_decides
    if not unasked and world.witness == before:
        return None
    said = "accept" if unasked or world.witness == now else "refuse"
    after = _stepped(copy.life, said, Asked())
    if after is None:
        return None
    return _with(world, number, copy._replace(life=after, refused=after.phase is Phase.REFUSED))


def _saved(world: World, rules: Rules, number: int) -> World | None:
    copy = world.copies[number]
    guarded = rules.witness and not copy.memory
    if guarded and rules.witness_asked_at_save and world.witness != (copy.index, copy.mark):
        refused = copy._replace(life=copy.life._replace(phase=Phase.REFUSED), refused=True)
        return _with(world, number, refused)
    phase = Phase.FULL if len(copy.rows) == ROOM else Phase.OPEN
    file = copy._replace(life=Life(phase, fence=copy.life.fence), memory=True)
    gone = copy._replace(life=copy.life._replace(phase=Phase.HANDED_OVER), rows=())
    left = LEFT if guarded and rules.save_leaves_witness else world.witness
    return _with(world, number, gone)._replace(files=(*world.files, file), witness=left)


def _killed(world: World, number: int) -> World:
    process = world.processes[number]
    rest = world.processes[:number] + world.processes[number + 1 :]
    after = world._replace(processes=rest)
    copy = world.copies[process.copy]
    if copy.memory and not any(one.copy == process.copy and not one.child for one in rest):
        # A policy in memory is gone with its process: what it had is lost, and nobody was promised more.
        lost = after.acknowledged & set(copy.rows)
        empty = copy._replace(life=copy.life._replace(phase=Phase.REFUSED), rows=(), refused=True)
        after = _with(after, process.copy, empty)._replace(lost=after.lost | lost)
    return after


class Found(NamedTuple):
    """What a search found: states, and the shortest way to a broken one."""

    states: int
    way: tuple[str, ...] | None
    promise: str | None


#: A policy without a store, in the process that made it.
IN_MEMORY = World((Copy(memory=True),), (Process(0, "a"),))


def search(rules: Rules, depth: int, begin: World | None = None) -> Found:
    """Visit every state that at most `depth` acts lead to, the nearest first."""
    begin = World() if begin is None else begin
    seen, level = {begin}, [(begin, ())]
    for _ in range(depth):
        following = []
        for world, way in level:
            for name, after in acts(world, rules):
                if after in seen:
                    continue
                seen.add(after)
                promise = broken(after)
                if promise is not None:
                    return Found(len(seen), (*way, name), promise)
                following.append((after, (*way, name)))
        level = following
    return Found(len(seen), None, None)
