-- A token that was made read-only changes nothing.
ALTER TABLE qodstate_token ADD COLUMN read_only boolean NOT NULL DEFAULT false;
