-- Objects that are gone although the stack that owns them did not end them. A row is written with whatever
-- deletes or buries the object, by hand or by another's commit, and stays until the stack has taken note.
CREATE TABLE qodstate_lost (
    id      uuid PRIMARY KEY,
    stack   text COLLATE "C" NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    at      timestamptz NOT NULL DEFAULT now()
);

-- Whoever may delete an object may have it recorded, whatever their search_path is.
CREATE FUNCTION qodstate_record_lost() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    record_all CONSTANT text := 'INSERT INTO %1$I.qodstate_lost (id, stack, kind, key, address)
        SELECT o.id, o.stack, o.kind, o.key, o.address FROM %2$s o WHERE o.tombstone IS NULL AND o.stack <> ''''
        ON CONFLICT (id) DO UPDATE SET stack = excluded.stack, kind = excluded.kind, key = excluded.key,
            address = excluded.address, at = excluded.at';
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        EXECUTE format(record_all, TG_TABLE_SCHEMA, format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME));
    ELSE
        EXECUTE format(record_all, TG_TABLE_SCHEMA, '(SELECT ($1).*)') USING OLD;
    END IF;
    RETURN NULL;
END $$;

-- A commit says in qod.stack whose it is: what a stack ends by itself is not lost.
CREATE TRIGGER qodstate_object_deleted AFTER DELETE ON qodstate_object FOR EACH ROW
    WHEN (OLD.tombstone IS NULL AND OLD.stack <> '' AND OLD.stack IS DISTINCT FROM current_setting('qod.stack', true))
    EXECUTE FUNCTION qodstate_record_lost();

CREATE TRIGGER qodstate_object_buried AFTER UPDATE OF tombstone ON qodstate_object FOR EACH ROW
    WHEN (OLD.tombstone IS NULL AND NEW.tombstone IS NOT NULL AND OLD.stack <> ''
        AND OLD.stack IS DISTINCT FROM current_setting('qod.stack', true))
    EXECUTE FUNCTION qodstate_record_lost();

CREATE TRIGGER qodstate_object_truncated BEFORE TRUNCATE ON qodstate_object
    EXECUTE FUNCTION qodstate_record_lost();
