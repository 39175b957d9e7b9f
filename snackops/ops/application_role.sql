-- The role that the product works as on PostgreSQL: it owns nothing, so whoever gets into the web server or a worker can
-- change no table, lift no trigger, empty nothing, and rewrite nothing of the record.
--
-- As the owner of the tables, after every `manage.py migrate` (it may be repeated at any time, also while workers run):
--     psql "$OWNER_URL" -v ON_ERROR_STOP=1 -f snackops/ops/application_role.sql
-- (The owner needs CREATEROLE the first time, or a superuser makes the role before.)
-- once, a password:  psql "$OWNER_URL" -c '\password snackops_app'
-- Then every web server, worker and redriver runs with DATABASE_URL=postgres://snackops_app:...@host/name, and only
-- `migrate` with the owner's.
BEGIN;

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'snackops_app') THEN
        CREATE ROLE snackops_app LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOREPLICATION NOBYPASSRLS;
    END IF;
END $$;

REVOKE ALL ON SCHEMA public FROM snackops_app;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM snackops_app;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM snackops_app;
GRANT USAGE ON SCHEMA public TO snackops_app;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO snackops_app;

-- added and never changed: the evidence and the record
GRANT SELECT, INSERT ON failures, late_finishes, unblocks, tombstones, redrives, redrive_outcomes, investigations,
    investigated_groups, approvals, audit, reconciliations TO snackops_app;

-- changed by guarded moves, never removed
GRANT SELECT, INSERT, UPDATE ON plans, plan_items, plan_groups, holds, preferences, auth_user TO snackops_app;
GRANT SELECT, INSERT, UPDATE ON heads TO snackops_app;  -- the end of the record, and when the house was last kept
GRANT SELECT, UPDATE ON queues TO snackops_app;

-- removed, too: done orders that are kept no longer (a trigger refuses every other), counters that are folded, signs of
-- life and presence that are over, what a person takes away again
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs, counts, flows, results, tallies, gates, processes, presences, saved_filters,
    auth_user_groups, auth_user_user_permissions, django_session, axes_accessattempt, axes_accessattemptexpiration,
    axes_accessfailurelog, axes_accesslog TO snackops_app;

-- read only: what a migration makes
GRANT SELECT ON auth_group, auth_permission, auth_group_permissions, django_content_type, django_migrations
    TO snackops_app;

COMMIT;
