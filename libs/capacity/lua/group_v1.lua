-- Tells how a group stands.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 group
--   GIVES    limit, how many wait, how many are parked, per holder: name, owner, worker, since (ms), end (ms)
--   KEEPS    changes nothing
-- include: head.lua
-- include: time.lua
-- use: holders
local group, held_by, parked = ARGV[3], {}, 0
for at, holder in ipairs(holders.of(group)) do
  held_by[at] = holders.describe(holder)
end
for _, bucket in ipairs(debts.buckets_of(group)) do
  parked = parked + redis.call('ZCARD', key('parked', bucket))
end
return { limits.of(group), redis.call('ZCARD', key('waiters', group)), parked, held_by }
