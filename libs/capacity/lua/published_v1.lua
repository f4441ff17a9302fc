-- Reads what the leader has published last.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 name
--   GIVES    text, or null: nothing was
--   KEEPS    changes nothing
-- include: head.lua
return redis.call('HGET', key('published'), ARGV[3])
