-- Who did what: logins, statements that were refused, and what was done to tokens and sessions.
CREATE TABLE qodstate_audit (
    at        timestamptz NOT NULL,
    id        text COLLATE "C" NOT NULL,
    username  text NOT NULL,
    tenant    text NOT NULL,
    realm     text NOT NULL,
    host      text NOT NULL,
    action    text COLLATE "C" NOT NULL,
    object    text NOT NULL,
    code      text NOT NULL,
    privilege text NOT NULL,
    detail    text NOT NULL,
    sql       text NOT NULL,
    PRIMARY KEY (at, id)
);

-- Personal access tokens. Only a digest of the secret is kept.
CREATE TABLE qodstate_token (
    id      text COLLATE "C" PRIMARY KEY,
    owner   uuid NOT NULL REFERENCES qodstate_object ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    name    text NOT NULL,
    hash    bytea NOT NULL,
    created timestamptz NOT NULL,
    expires timestamptz NOT NULL,
    revoked timestamptz
);
CREATE INDEX qodstate_token_owner ON qodstate_token (owner);

-- Sessions that were ended from outside: one by its id, or all that a user began up to a time. A row is of
-- no use once every bearer it could be about has expired.
CREATE TABLE qodstate_revoked_jti (
    jti     text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    at      timestamptz NOT NULL,
    expires timestamptz NOT NULL,
    PRIMARY KEY (jti, user_id),
    CHECK ((jti = '') <> (user_id = ''))
);
