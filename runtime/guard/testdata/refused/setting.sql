# Settings and their values.
SET enable_external_access = true
SET GLOBAL memory_limit = '1TB'
SET threads = 99
SET lock_configuration = false
SET VARIABLE x = 1
SET VARIABLE x = (FROM salaries)
SET LOCAL schema = 'main'
SET s3_secret_access_key = 'x'
SET custom_extension_repository = 'x'
SET TimeZone = 'Europe/Berlin'
SET TIME ZONE 'America/New_York'
SET client_encoding = 'latin1'
SET schema = (SELECT 'main')
SET search_path = main, memory
SET search_path = 'a,"memory"'
SET schema = E'mem\x6fry'
SET schema = 'a.b.c'
SET schema = concat('a', 'b')
RESET ALL
RESET threads
RESET lock_configuration
RESET SESSION schema
SET schema FROM CURRENT
SET statement_timeout = 1
SET schema
SET enable_profiling = 'json'
SET profile_output = '/tmp/x'
SET SESSION threads = 3
SET standard_conforming_strings = off
