-- Keeps what the leader has worked out for all replicas to show.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 name, 4 text
--   GIVES    OK
--   KEEPS    it is no fact: gone with the generation
-- include: head.lua
redis.call('HSET', key('published'), ARGV[3], ARGV[4])
return redis.status_reply('OK')
