-- Lists a user's jobs, newest first by their first event.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 user, 4 only those whose first event is before this seq (empty: all), 5 how many
--   GIVES    id, seq of its first event, …
--   KEEPS    changes nothing
-- include: head.lua
local below = ARGV[4] == '' and '+inf' or '(' .. ARGV[4]
return redis.call('ZREVRANGEBYSCORE', key('owned', ARGV[3]), below, '-inf', 'WITHSCORES', 'LIMIT', 0, ARGV[5])
