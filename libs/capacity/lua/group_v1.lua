-- Tells how a group stands.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 group
--   GIVES    limit, how many wait, how many are parked, per holder: name, owner, user, worker, since (ms), end (ms) · until when
--            it is shut (ms)
--   KEEPS    changes nothing
-- include: head.lua
-- include: time.lua
-- use: holders
local group, parked = ARGV[3], 0
for _, blocker in ipairs({ group, shutting.gate(group) }) do
  for _, bucket in ipairs(debts.buckets_of(blocker)) do
    parked = parked + redis.call('ZCARD', key('parked', bucket))
  end
end
return {
  limits.of(group), redis.call('ZCARD', key('waiters', group)), parked, holders.describe_all(group),
  shutting.ends_of(group) or false,
}
