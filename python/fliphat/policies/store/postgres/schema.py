"""The tables of a policy that many workers play, and the functions that change them, each in one transaction.

| table | what it holds | private |
|---|---|---|
| ``fliphat_policy`` | one row: format, arguments, arms, the secret of digests, openings, late rewards | yes |
| ``fliphat_episodes`` | one row an episode: its rounds, whether it is claimed, what it released | no |
| ``fliphat_users``, ``fliphat_keys`` | keyed digests: rounds of each user, the decision of each key | yes |
| ``fliphat_rounds_0``, ``_1`` | rows of the open episode, in the table of its parity | yes |
| ``fliphat_rewards_0``, ``_1`` | rewards of those rows | yes |

An episode passes through ``opened``, ``claimed``, ``released`` and ``seen``. Two episodes can have rows at
once: the one that is being fitted, and the one after it, whose first rounds are played by the estimate that
is public already. So two tables are enough, and a release empties one of them without looking at each row.

Every round is played under the lock of its episode's row: the same statement that counts it gives it its
slot, and finds out whether its arm was chosen by the newest estimate and among the arms that there are.
Rewards only share an advisory lock, which a claim takes alone: a reward is either there before the claim, or
late. Whoever empties rows, or changes the arms, takes it alone, too.

Ages are measured by the server's clock, so that workers whose clocks differ agree.
"""

from __future__ import annotations

from typing import Final

__all__ = ["APPLICATION", "FORMAT", "FUNCTIONS", "OTHER_KEY", "OTHER_USERS", "SCHEMA", "UNKNOWN_DECISION"]

FORMAT: Final = 1
#: What a worker's sessions call themselves, unless the address says otherwise.
APPLICATION: Final = "fliphat"

#: What the functions below raise, besides the database's own errors.
OTHER_KEY, OTHER_USERS, UNKNOWN_DECISION = "FH001", "FH002", "FH003"

_TABLES: Final = """
CREATE TABLE fliphat_policy (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    format integer NOT NULL,
    policy text NOT NULL,
    settings text NOT NULL,
    secret bytea NOT NULL,
    openings bigint NOT NULL,
    with_users boolean,
    user_kind text,
    late bigint NOT NULL DEFAULT 0,
    witnessed boolean NOT NULL DEFAULT false,
    arms text,
    arms_version integer NOT NULL DEFAULT 0,
    emptied bigint NOT NULL DEFAULT 0,
    rewritten bigint NOT NULL DEFAULT 0
);
CREATE TABLE fliphat_episodes (
    episode integer PRIMARY KEY,
    first_round bigint NOT NULL,
    room integer NOT NULL,
    filled integer NOT NULL DEFAULT 0,
    releases integer NOT NULL,
    arms integer NOT NULL DEFAULT 0,
    expired integer NOT NULL DEFAULT 0,
    opened boolean NOT NULL,
    claimed boolean NOT NULL DEFAULT false,
    released boolean NOT NULL DEFAULT false,
    seen boolean NOT NULL DEFAULT false,
    fitting_since timestamptz,
    next_room integer,
    fence text,
    facts text,
    indices bytea,
    numbers bytea,
    known text
) WITH (fillfactor = 20);
CREATE TABLE fliphat_users (digest bytea PRIMARY KEY, rounds bigint NOT NULL) WITH (fillfactor = 80);
CREATE TABLE fliphat_keys (
    digest bytea PRIMARY KEY,
    id bigint NOT NULL,
    arm integer NOT NULL,
    valid boolean NOT NULL,
    episode integer NOT NULL,
    probability double precision NOT NULL,
    name text
);
"""

# Rows are numbers: compressing them costs time and gains nothing.
_HALF: Final = """
CREATE TABLE fliphat_rounds_{half} (
    slot integer PRIMARY KEY,
    id bigint NOT NULL,
    learned boolean NOT NULL,
    sparse boolean NOT NULL,
    attempt bigint NOT NULL,
    played timestamptz NOT NULL,
    owner bytea,
    columns bytea,
    numbers bytea
) WITH (toast_tuple_target = 8160);
ALTER TABLE fliphat_rounds_{half} ALTER columns SET STORAGE EXTERNAL, ALTER numbers SET STORAGE EXTERNAL;
CREATE TABLE fliphat_rewards_{half} (
    slot integer PRIMARY KEY,
    reward double precision NOT NULL,
    attempt bigint NOT NULL
);
CREATE FUNCTION fliphat_play_{half}(
    p_episode integer, p_releases integer, p_opening bigint, p_limit bigint, p_attempt bigint,
    p_again boolean, p_users boolean, p_kind text, p_valid boolean[], p_owners bytea[], p_sparse boolean,
    p_columns bytea[], p_numbers bytea[], p_keys bytea[], p_shown integer[],
    p_probabilities double precision[], p_names text[], p_arms integer
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    played integer := cardinality(p_valid);
    at integer;
    first_id bigint;
    keep boolean;
BEGIN
    -- The counter's lock is given back at once; who played waits for the disk afterwards, with all others.
    PERFORM set_config('synchronous_commit', 'off', true);
    IF p_again THEN
        SELECT min(id) INTO first_id FROM fliphat_rounds_{half} WHERE attempt = p_attempt;
        IF first_id IS NOT NULL THEN
            RETURN first_id;
        END IF;
    END IF;
    UPDATE fliphat_episodes SET filled = filled + played
        WHERE episode = p_episode AND releases = p_releases AND arms = p_arms AND NOT claimed
            AND filled + played <= room
        RETURNING filled - played, p_opening + first_round + filled - played INTO at, first_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF p_users IS NOT NULL THEN
        UPDATE fliphat_policy SET with_users = p_users, user_kind = p_kind WHERE with_users IS NULL;
        PERFORM 1 FROM fliphat_policy
            WHERE with_users = p_users AND user_kind IS NOT DISTINCT FROM p_kind;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'user ids differ' USING ERRCODE = 'FH002';
        END IF;
    END IF;
    IF p_owners IS NULL AND p_keys IS NULL THEN  -- in one statement, which is faster
        INSERT INTO fliphat_rounds_{half}
            SELECT at + i - 1, first_id + i - 1, p_valid[i], p_sparse, p_attempt, now(), NULL,
                CASE WHEN p_valid[i] THEN p_columns[i] END, CASE WHEN p_valid[i] THEN p_numbers[i] END
            FROM generate_series(1, played) AS i;
        RETURN first_id;
    END IF;
    FOR i IN 1 .. played LOOP
        keep := p_valid[i];
        IF p_owners IS NOT NULL THEN
            INSERT INTO fliphat_users AS u VALUES (p_owners[i], 1)
                ON CONFLICT (digest) DO UPDATE SET rounds = u.rounds + 1
                RETURNING keep AND rounds <= p_limit INTO keep;
        END IF;
        INSERT INTO fliphat_rounds_{half} VALUES (
            at + i - 1, first_id + i - 1, keep, p_sparse, p_attempt, now(), p_owners[i],
            CASE WHEN keep THEN p_columns[i] END, CASE WHEN keep THEN p_numbers[i] END
        );
        IF p_keys[i] IS NOT NULL THEN
            INSERT INTO fliphat_keys VALUES (p_keys[i], first_id + i - 1, p_shown[i], p_valid[i], p_episode,
                p_probabilities[i], p_names[i]) ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the key was played' USING ERRCODE = 'FH001';
            END IF;
        END IF;
    END LOOP;
    RETURN first_id;
END $$;
CREATE FUNCTION fliphat_take_{half}(
    p_slot integer, p_id bigint, p_reward double precision, p_attempt bigint, p_first integer,
    p_since timestamptz
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    in_time boolean;
BEGIN
    INSERT INTO fliphat_rewards_{half}
        SELECT slot, CASE WHEN learned THEN p_reward ELSE 'Infinity' END, p_attempt
        FROM fliphat_rounds_{half} WHERE slot = p_slot AND id = p_id AND p_reward IS NOT NULL
            AND slot >= p_first AND played > p_since
        ON CONFLICT DO NOTHING;
    IF FOUND THEN
        RETURN 1;
    END IF;
    SELECT slot >= p_first AND played > p_since INTO in_time
        FROM fliphat_rounds_{half} WHERE slot = p_slot AND id = p_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'unknown decision' USING ERRCODE = 'FH003';
    END IF;
    SELECT attempt INTO before FROM fliphat_rewards_{half} WHERE slot = p_slot;
    RETURN CASE WHEN before = p_attempt AND p_reward IS NOT NULL THEN 1 WHEN in_time THEN 2 ELSE 0 END;
END $$;
"""

_FUNCTIONS: Final = """
CREATE FUNCTION fliphat_reward(
    p_ids bigint[], p_rewards double precision[], p_attempt bigint, p_lock bigint, p_durable boolean,
    p_most_rounds bigint, p_most_seconds double precision
) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    told integer[] := '{}';
    too_late integer := 0;
    round_number bigint;
    one record;
    outcome integer;
    first_slot integer;
    since timestamptz := coalesce(now() - make_interval(secs => p_most_seconds), '-infinity');
BEGIN
    IF NOT p_durable THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    PERFORM pg_advisory_xact_lock_shared(p_lock);
    FOR i IN 1 .. cardinality(p_ids) LOOP
        round_number := p_ids[i] % 1099511627776;
        SELECT episode, first_round, filled, claimed INTO one FROM fliphat_episodes
            WHERE NOT released AND first_round <= round_number ORDER BY episode DESC LIMIT 1;
        IF NOT FOUND OR (one.claimed AND round_number < one.first_round + one.filled) THEN
            PERFORM 1 FROM fliphat_policy
                WHERE round_number >= 1 AND p_ids[i] / 1099511627776 BETWEEN 0 AND openings;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'unknown decision' USING ERRCODE = 'FH003';
            END IF;
            outcome := 0;
        ELSIF round_number >= one.first_round + one.filled THEN
            RAISE EXCEPTION 'unknown decision' USING ERRCODE = 'FH003';
        ELSE
            first_slot := greatest(one.filled - p_most_rounds, 0);  -- 0 without a limit
            IF one.episode % 2 = 0 THEN
                outcome := fliphat_take_0((round_number - one.first_round)::integer, p_ids[i], p_rewards[i],
                    p_attempt, first_slot, since);
            ELSE
                outcome := fliphat_take_1((round_number - one.first_round)::integer, p_ids[i], p_rewards[i],
                    p_attempt, first_slot, since);
            END IF;
        END IF;
        too_late := too_late + (outcome = 0)::integer;
        told := told || outcome;
    END LOOP;
    IF too_late > 0 THEN
        UPDATE fliphat_policy SET late = late + too_late;
    END IF;
    RETURN told;
END $$;
CREATE FUNCTION fliphat_cancel(p_id bigint, p_lock bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF (fliphat_reward(
            ARRAY[p_id], ARRAY['Infinity'::double precision], 0, p_lock, true, NULL, NULL))[1] = 0 THEN
        UPDATE fliphat_policy SET late = late - 1;
        RETURN false;
    END IF;
    -- No two rounds that are open have the same id, so no more than one of these finds a row.
    UPDATE fliphat_rewards_0 SET reward = 'Infinity' WHERE slot IN
        (SELECT slot FROM fliphat_rounds_0 WHERE id = p_id);
    UPDATE fliphat_rewards_1 SET reward = 'Infinity' WHERE slot IN
        (SELECT slot FROM fliphat_rounds_1 WHERE id = p_id);
    UPDATE fliphat_rounds_0 SET learned = false, columns = NULL, numbers = NULL WHERE id = p_id;
    UPDATE fliphat_rounds_1 SET learned = false, columns = NULL, numbers = NULL WHERE id = p_id;
    RETURN true;
END $$;
CREATE FUNCTION fliphat_claim(p_episode integer, p_next_room integer, p_lock bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(p_lock);
    UPDATE fliphat_episodes SET claimed = true
        WHERE episode = p_episode AND opened AND filled = room AND NOT claimed;
    IF FOUND THEN
        INSERT INTO fliphat_episodes (episode, first_round, room, releases, arms, opened)
            SELECT episode + 1, first_round + filled, p_next_room, releases, arms, false
            FROM fliphat_episodes WHERE episode = p_episode;
    END IF;
END $$;
CREATE FUNCTION fliphat_change_arms(p_before integer, p_arms text, p_again boolean, p_lock bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    -- No episode is opened meanwhile, and no round counted: both read the version below.
    PERFORM pg_advisory_xact_lock(p_lock);
    IF p_again AND EXISTS (
            SELECT FROM fliphat_policy WHERE arms_version = p_before + 1 AND arms = p_arms) THEN
        RETURN true;
    END IF;
    UPDATE fliphat_episodes SET arms = p_before + 1 WHERE NOT seen AND arms = p_before;
    UPDATE fliphat_policy SET arms_version = p_before + 1, arms = p_arms WHERE arms_version = p_before;
    RETURN FOUND;
END $$;
CREATE FUNCTION fliphat_expire(
    p_rounds bigint, p_early_rounds bigint, p_seconds double precision, p_early_seconds double precision,
    p_lock bigint
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    played_rounds bigint;
    one record;
    oldest timestamptz;
    going integer;
    gone integer := 0;
BEGIN
    SELECT max(first_round + filled) INTO played_rounds FROM fliphat_episodes WHERE NOT released;
    FOR one IN SELECT episode, episode % 2 AS half, first_round, filled, expired FROM fliphat_episodes
            WHERE NOT released AND filled > expired ORDER BY episode LOOP
        IF p_rounds IS NOT NULL THEN
            CONTINUE WHEN played_rounds - p_rounds <= one.first_round + one.expired;
            going := least(played_rounds - p_early_rounds - one.first_round, one.filled);
        ELSE
            -- Slots are given in the order of time: the first that is left is the oldest.
            EXECUTE format('SELECT played FROM fliphat_rounds_%s WHERE slot >= $1 ORDER BY slot LIMIT 1',
                one.half) INTO oldest USING one.expired;
            CONTINUE WHEN oldest IS NULL OR oldest > now() - make_interval(secs => p_seconds);
            EXECUTE format('SELECT max(slot) + 1 FROM fliphat_rounds_%s WHERE played <= $1', one.half)
                INTO going USING now() - make_interval(secs => p_early_seconds);
        END IF;
        PERFORM pg_advisory_xact_lock(p_lock);  -- no reward is under way to a row that is emptied
        UPDATE fliphat_episodes SET expired = going
            WHERE episode = one.episode AND NOT released AND expired < going;
        CONTINUE WHEN NOT FOUND;
        EXECUTE format('UPDATE fliphat_rewards_%s SET reward = ''Infinity'' WHERE slot >= $1 AND slot < $2',
            one.half) USING one.expired, going;
        EXECUTE format('UPDATE fliphat_rounds_%s SET learned = false, columns = NULL, numbers = NULL'
            ' WHERE slot >= $1 AND slot < $2', one.half) USING one.expired, going;
        gone := gone + going - one.expired;
    END LOOP;
    IF gone > 0 THEN
        UPDATE fliphat_policy SET emptied = emptied + 1;  -- and the tables' files are to be written again
    END IF;
    RETURN gone;
END $$;
CREATE FUNCTION fliphat_show(p_episode integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    length integer;
BEGIN
    UPDATE fliphat_episodes SET seen = true WHERE episode = p_episode AND released AND NOT seen
        RETURNING next_room INTO length;
    IF FOUND THEN
        UPDATE fliphat_episodes SET releases = p_episode + 1, room = length, opened = true
            WHERE episode = p_episode + 1;
    END IF;
END $$;
CREATE FUNCTION fliphat_commit(
    p_episode integer, p_facts text, p_indices bytea, p_numbers bytea, p_known text, p_next_room integer,
    p_fence text, p_show boolean
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE fliphat_episodes SET released = true, facts = p_facts, indices = p_indices, numbers = p_numbers,
            known = p_known, next_room = p_next_room, fence = p_fence
        WHERE episode = p_episode AND claimed AND NOT released;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF p_show AND NOT (SELECT witnessed FROM fliphat_policy) THEN
        PERFORM fliphat_show(p_episode);
    END IF;
    -- Last: nobody who waits for a row above holds a lock on these tables.
    IF p_episode % 2 = 0 THEN
        TRUNCATE fliphat_rounds_0, fliphat_rewards_0;
    ELSE
        TRUNCATE fliphat_rounds_1, fliphat_rewards_1;
    END IF;
    RETURN true;
END $$;
"""

#: The names of all functions.
FUNCTIONS: Final = (
    *(f"fliphat_{name}_{half}" for name in ("play", "take") for half in (0, 1)),
    *("fliphat_reward", "fliphat_cancel", "fliphat_claim", "fliphat_change_arms", "fliphat_expire"),
    *("fliphat_show", "fliphat_commit"),
)

#: All of it, in the order in which it can be created.
SCHEMA: Final = _TABLES + "".join(_HALF.replace("{half}", half) for half in "01") + _FUNCTIONS
