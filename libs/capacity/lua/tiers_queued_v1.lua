-- Counts the queued jobs of each tier, paused ones too. A reservation is no job yet.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty)
--   GIVES    tier, how many, …
--   KEEPS    changes nothing
-- include: head.lua
return redis.call('HGETALL', key('queued'))
