-- Keeps a ticket for a stream, unless its user was given as many as are good at once; beside every generation.
--   KEYS[1]  the shard's view, which need not be there
--   ARGV     1 epoch, which does not count here, 2 now (ms or empty), 3 the ticket's digest, 4 who it is for, as text,
--            5 their user, 6 how many may be good at once, 7 for how long it is good (ms)
--   GIVES    0, or after how many ms one more is kept
--   KEEPS    a ticket counts until its time is over, used or not; asked twice it is the same one
-- include: time.lua
space = string.sub(KEYS[1], 1, -5) -- `view` is four letters
local digest, given, good_for = ARGV[3], key('tickets', ARGV[5]), tonumber(ARGV[7])
redis.call('ZREMRANGEBYSCORE', given, '-inf', now)
if not redis.call('ZSCORE', given, digest) and redis.call('ZCARD', given) >= tonumber(ARGV[6]) then
  return redis.call('ZRANGE', given, 0, 0, 'WITHSCORES')[2] - now
end
redis.call('ZADD', given, now + good_for, digest)
redis.call('PEXPIRE', given, good_for)
redis.call('SET', key('ticket', digest), ARGV[4], 'PX', good_for)
return 0
