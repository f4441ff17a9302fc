-- Reads a job as it was folded.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 job's id
--   GIVES    JSON, or null: no row
--   KEEPS    changes nothing
-- include: head.lua
return redis.call('HGET', key('job', ARGV[3]), 'doc')
