-- Says what has come due: timers, and running jobs whose lease has ended.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 how many of each at most
--   GIVES    timers as <kind>:<job>, due (ms), …, oldest first · holders, end (ms), …, likewise
--   KEEPS    changes nothing: what is due is due until the log says otherwise
-- include: head.lua
-- include: time.lua
return {
  redis.call('ZRANGEBYSCORE', key('timers'), '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[3]),
  redis.call('ZRANGEBYSCORE', key('leases'), '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[3]),
}
