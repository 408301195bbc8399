-- One row: the number of commits. Whoever writes state locks it first, so commits happen one after the
-- other and a revision that can be read is never followed by a lower one.
CREATE TABLE qodstate_revision (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    revision bigint NOT NULL
);
INSERT INTO qodstate_revision (revision) VALUES (0);

CREATE TABLE qodstate_stack (
    name    text PRIMARY KEY,
    lineage text NOT NULL
);

-- A key and an address belong to one living object; tombstones do not count, so a name is free as soon
-- as its object is buried. Both constraints are checked at commit: objects may swap names.
CREATE TABLE qodstate_object (
    id             uuid PRIMARY KEY,
    kind           text COLLATE "C" NOT NULL,
    key            text COLLATE "C" NOT NULL,
    spec           jsonb NOT NULL,
    applied        jsonb,
    address        text COLLATE "C" NOT NULL,
    stack          text COLLATE "C" NOT NULL,
    generation     bigint NOT NULL,
    revision       bigint NOT NULL,
    status         jsonb NOT NULL DEFAULT '{}',
    schema_version integer NOT NULL,
    tombstone      timestamptz,
    created        timestamptz NOT NULL DEFAULT now(),
    updated        timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT qodstate_object_key EXCLUDE USING btree (kind WITH =, key WITH =)
        WHERE (tombstone IS NULL) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT qodstate_object_address EXCLUDE USING btree (stack WITH =, address WITH =)
        WHERE (tombstone IS NULL AND address <> '') DEFERRABLE INITIALLY DEFERRED
);

CREATE TABLE qodstate_object_ref (
    from_id   uuid NOT NULL REFERENCES qodstate_object ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    attribute text NOT NULL,
    ordinal   integer NOT NULL,
    to_id     uuid NOT NULL REFERENCES qodstate_object DEFERRABLE INITIALLY DEFERRED,
    PRIMARY KEY (from_id, attribute, ordinal)
);
CREATE INDEX qodstate_object_ref_to ON qodstate_object_ref (to_id);

CREATE TABLE qodstate_secret (
    object_id uuid NOT NULL REFERENCES qodstate_object ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    attribute text NOT NULL,
    version   integer NOT NULL DEFAULT 1,
    sealed    bytea NOT NULL,
    PRIMARY KEY (object_id, attribute)
);

-- previous maps the id of each object the commit touched to what it was before, or to null.
CREATE TABLE qodstate_apply (
    id       uuid PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT now(),
    by       text NOT NULL,
    host     text NOT NULL,
    stack    text NOT NULL,
    plan_id  text UNIQUE,
    note     text NOT NULL,
    revision bigint NOT NULL UNIQUE,
    previous jsonb NOT NULL
);

CREATE TABLE qodstate_node (
    id          text COLLATE "C" PRIMARY KEY,
    pool_id     text NOT NULL,
    host        text NOT NULL,
    role        text NOT NULL,
    endpoint    text NOT NULL,
    pid         bigint NOT NULL,
    started     timestamptz NOT NULL,
    spec_hash   text NOT NULL,
    incarnation text NOT NULL,
    phase       text NOT NULL,
    reason      text NOT NULL,
    seen        timestamptz NOT NULL DEFAULT '0001-01-01 00:00:00+00' -- never
);

CREATE TABLE qodstate_key (
    id      integer PRIMARY KEY CHECK (id BETWEEN 1 AND 255),
    sealed  bytea NOT NULL,
    created timestamptz NOT NULL
);

-- The lock itself is a session advisory lock; the row has its term, and its holder for people.
CREATE TABLE qodstate_lease (
    name   text PRIMARY KEY,
    term   bigint NOT NULL,
    holder text NOT NULL,
    since  timestamptz NOT NULL
);

-- Partitions are days in UTC, qodstate_statement_YYYYMMDD, made when the first row of a day arrives.
CREATE TABLE qodstate_statement (
    started      timestamptz NOT NULL,
    id           text COLLATE "C" NOT NULL,
    tenant       text NOT NULL,
    pool         text NOT NULL,
    username     text NOT NULL,
    node         text NOT NULL,
    sql          text NOT NULL,
    class        text NOT NULL,
    status       text NOT NULL,
    error        text NOT NULL,
    microseconds bigint NOT NULL,
    row_count    bigint NOT NULL,
    byte_count   bigint NOT NULL,
    PRIMARY KEY (started, id)
) PARTITION BY RANGE (started);
