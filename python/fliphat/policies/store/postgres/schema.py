"""What a server does to play rounds and to take rewards, each in one round trip.

Playing is two transactions: the first counts the rounds and gives the counter's lock back before it is on
disk, so that other workers need not wait for each other's disk; the second is empty and waits for the disk.

The tables are those of :mod:`fliphat.policies.store.tables`. Every round is played under the lock of its
episode's row: the statement that counts it gives it its number, and finds out whether its arm was chosen by
the newest estimate and among the arms that there are. In the same transaction it is decided whether rounds
have user ids, of which kind, and which of them a user is learned from.

Rewards share an advisory lock, which a claim takes alone: a reward is either there before the claim, or late.
Whoever empties rows, or changes the arms, takes it alone, too. Which phases of an episode allow what is
written into the functions from the table of :mod:`fliphat.policies.engine.lifecycle`.
"""

from __future__ import annotations

from typing import Final

from fliphat.policies.engine.lifecycle import MAY, Phase
from fliphat.policies.store.tables import tables

__all__ = [
    "APPLICATION",
    "FUNCTIONS",
    "OTHER_KEY",
    "OTHER_USERS",
    "UNKNOWN_DECISION",
    "procedures",
    "statements",
]

#: What a worker's sessions call themselves, unless the address says otherwise.
APPLICATION: Final = "fliphat"

#: What the functions below raise, besides the database's own errors.
OTHER_KEY, OTHER_USERS, UNKNOWN_DECISION = "FH001", "FH002", "FH003"

# Rows are numbers: compressing them costs time and gains nothing.
_STORAGE: Final = """
ALTER TABLE fliphat_rounds ALTER columns SET STORAGE EXTERNAL, ALTER numbers SET STORAGE EXTERNAL;
ALTER TABLE fliphat_rounds SET (toast_tuple_target = 8160);
ALTER TABLE fliphat_episodes SET (fillfactor = 20);
ALTER TABLE fliphat_users SET (fillfactor = 80)
"""

_PLAY: Final = """
CREATE PROCEDURE fliphat_count(
    INOUT p_id bigint, p_durable boolean,
    p_episode integer, p_releases integer, p_opening bigint, p_limit bigint, p_attempt bigint,
    p_again boolean, p_users boolean, p_kind text, p_valid boolean[], p_owners bytea[], p_sparse boolean,
    p_columns bytea[], p_numbers bytea[], p_checksums bigint[], p_keys bytea[], p_shown integer[],
    p_probabilities double precision[], p_names text[], p_arms integer
) LANGUAGE plpgsql AS $$
DECLARE
    played integer := cardinality(p_valid);
    number bigint;
    moment double precision := extract(epoch FROM now());
    keep boolean;
BEGIN
    <<counting>>
    BEGIN
        -- The counter's lock is given back at once; who played waits for the disk afterwards.
        PERFORM set_config('synchronous_commit', 'off', true);
        IF p_again THEN
            -- The first attempt may still wait for this lock: it is before this one, and seen afterwards.
            PERFORM 1 FROM fliphat_episodes WHERE episode = p_episode FOR UPDATE;
            SELECT min(id) INTO p_id FROM fliphat_rounds WHERE attempt = p_attempt;
            EXIT counting WHEN p_id IS NOT NULL;
        END IF;
        UPDATE fliphat_episodes SET filled = filled + played, phase = CASE
                WHEN phase = '{open}' AND filled + played = room THEN '{full}' ELSE phase END
            WHERE episode = p_episode AND releases = p_releases AND arms = p_arms AND phase IN ({play})
                AND filled + played <= room
            RETURNING first_round + filled - played INTO number;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        p_id := p_opening + number;
        UPDATE fliphat_policy SET with_users = p_users, user_kind = p_kind
            WHERE with_users IS NULL OR (with_users AND user_kind IS NULL AND p_users);
        PERFORM 1 FROM fliphat_policy WHERE with_users = p_users AND user_kind IS NOT DISTINCT FROM p_kind;
        IF NOT FOUND OR p_users <> (p_owners IS NOT NULL) THEN
            RAISE EXCEPTION 'user ids differ' USING ERRCODE = 'FH002';
        END IF;
        IF p_owners IS NULL AND p_keys IS NULL THEN  -- in one statement, which is faster
            INSERT INTO fliphat_rounds
                SELECT number + i - 1, p_opening + number + i - 1, p_valid[i], p_sparse, p_attempt, moment,
                    NULL, CASE WHEN p_valid[i] THEN p_columns[i] END,
                    CASE WHEN p_valid[i] THEN p_numbers[i] END,
                    CASE WHEN p_valid[i] THEN p_checksums[i] END
                FROM generate_series(1, played) AS i;
            EXIT counting;
        END IF;
        FOR i IN 1 .. played LOOP
            keep := p_valid[i];
            IF p_users THEN
                INSERT INTO fliphat_users AS u VALUES (p_owners[i], 1)
                    ON CONFLICT (digest) DO UPDATE SET rounds = u.rounds + 1
                    RETURNING keep AND rounds <= p_limit INTO keep;
            END IF;
            INSERT INTO fliphat_rounds VALUES (
                number + i - 1, p_opening + number + i - 1, keep, p_sparse, p_attempt, moment, p_owners[i],
                CASE WHEN keep THEN p_columns[i] END, CASE WHEN keep THEN p_numbers[i] END,
                CASE WHEN keep THEN p_checksums[i] END
            );
            IF p_keys[i] IS NOT NULL THEN
                INSERT INTO fliphat_keys VALUES (p_keys[i], p_opening + number + i - 1, p_shown[i],
                    p_valid[i], p_episode, p_probabilities[i], p_names[i]) ON CONFLICT DO NOTHING;
                IF NOT FOUND THEN
                    RAISE EXCEPTION 'the key was played' USING ERRCODE = 'FH001';
                END IF;
            END IF;
        END LOOP;
    END;
    COMMIT;
    IF p_durable THEN  -- a transaction of its own, which returns when all before it in the log is durable
        PERFORM pg_logical_emit_message(true, 'fliphat', '');
    END IF;
END $$
"""

_REWARD: Final = """
CREATE FUNCTION fliphat_reward(
    p_ids bigint[], p_rewards double precision[], p_attempt bigint, p_lock bigint, p_durable boolean,
    p_most_rounds bigint, p_most_seconds double precision
) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    told integer[] := '{}';
    too_late integer := 0;
    number bigint;
    one record;
    outcome integer;
    in_time boolean;
    before bigint;
    since double precision := coalesce(extract(epoch FROM now()) - p_most_seconds, '-Infinity');
BEGIN
    IF NOT p_durable THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    PERFORM pg_advisory_xact_lock_shared(p_lock);
    FOR i IN 1 .. cardinality(p_ids) LOOP
        number := p_ids[i] % 1099511627776;
        SELECT first_round, filled, phase INTO one FROM fliphat_episodes
            WHERE first_round <= number ORDER BY episode DESC LIMIT 1;
        IF NOT FOUND OR number >= one.first_round + one.filled THEN
            RAISE EXCEPTION 'unknown decision' USING ERRCODE = 'FH003';
        ELSIF one.phase NOT IN ({reward}) THEN
            PERFORM 1 FROM fliphat_policy WHERE p_ids[i] / 1099511627776 BETWEEN 0 AND openings;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'unknown decision' USING ERRCODE = 'FH003';
            END IF;
            outcome := 0;
        ELSE
            -- Without a limit in rounds, from the first on.
            SELECT number >= one.first_round + greatest(one.filled - p_most_rounds, 0)
                    AND coalesce(played, since) >= since INTO in_time
                FROM fliphat_rounds WHERE round = number AND id = p_ids[i];
            IF NOT FOUND THEN
                RAISE EXCEPTION 'unknown decision' USING ERRCODE = 'FH003';
            END IF;
            INSERT INTO fliphat_rewards
                SELECT round, CASE WHEN learned THEN p_rewards[i] ELSE 'Infinity' END, p_attempt
                FROM fliphat_rounds WHERE round = number AND in_time AND p_rewards[i] IS NOT NULL
                ON CONFLICT DO NOTHING;
            IF FOUND THEN
                outcome := 1;
            ELSE
                SELECT attempt INTO before FROM fliphat_rewards WHERE round = number;
                outcome := CASE WHEN before = p_attempt AND p_rewards[i] IS NOT NULL THEN 1
                    WHEN in_time THEN 2 ELSE 0 END;
            END IF;
        END IF;
        too_late := too_late + (outcome = 0)::integer;
        told := told || outcome;
    END LOOP;
    IF too_late > 0 THEN
        UPDATE fliphat_policy SET late = late + too_late;
    END IF;
    RETURN told;
END $$
"""

#: The names of all functions.
FUNCTIONS: Final = ("fliphat_count", "fliphat_reward")


def procedures() -> str:
    """Return what plays rounds and takes rewards."""
    made = _PLAY + ";" + _REWARD
    for act in ("play", "reward"):
        phases = ", ".join(f"'{phase}'" for phase in sorted(MAY[act]))
        made = made.replace(f"{{{act}}}", phases)
    return made.replace("{open}", Phase.OPEN).replace("{full}", Phase.FULL)


def statements() -> str:
    """Return everything that a new policy's schema gets, in the order in which it can be created."""
    return ";\n".join([*tables("bigint"), _STORAGE, procedures()])
