-- Takes over the limits that policy names; the waiters are looked at again.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 the limits (JSON: group, user/<tier>, project/<tier> or group/<name> → limit)
--   GIVES    OK; its grants are given by the next call that can
--   KEEPS    limits that operators or submissions have set count before these
-- include: head.lua
-- include: time.lua
-- use: leases
redis.call('DEL', key('defaults'))
for name, limit in pairs(cjson.decode(ARGV[3])) do
  redis.call('HSET', key('defaults'), name, limit)
end
leases.wake(redis.call('ZRANGE', key('awaited'), 0, -1))
grants.tell_later()
return redis.status_reply('OK')
