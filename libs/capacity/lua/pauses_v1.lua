-- Lists what is paused.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty)
--   GIVES    scope, JSON of by, reason, since_ms, …
--   KEEPS    changes nothing
-- include: head.lua
return redis.call('HGETALL', key('paused'))
