-- sensitive lists attributes whose values must not be shown, although they are no secrets of the kind.
ALTER TABLE qodstate_object
    ADD COLUMN protected boolean NOT NULL DEFAULT false,
    ADD COLUMN sensitive jsonb   NOT NULL DEFAULT '[]';

-- The outputs of each stack's last apply. The value of a sensitive one is a keyed fingerprint; type and
-- value are sealed.
CREATE TABLE qodstate_output (
    stack       text COLLATE "C" NOT NULL,
    name        text COLLATE "C" NOT NULL,
    type        json NOT NULL,
    value       json NOT NULL,
    sealed      bytea,
    sensitive   boolean NOT NULL,
    description text NOT NULL,
    PRIMARY KEY (stack, name)
);

-- What the outputs of the stack were before, or null where the commit left them alone.
ALTER TABLE qodstate_apply ADD COLUMN previous_outputs json;
