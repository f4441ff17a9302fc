-- Tells how a group stands.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 group, 4 tier of the job that would ask (or empty)
--   GIVES    limit, how many wait, how many are parked, per holder: name, owner, user, worker, since (ms), end (ms) · until when
--            it is shut (ms)
--   KEEPS    changes nothing
-- include: head.lua
-- include: time.lua
-- use: holders
local group, tier, parked = ARGV[3], ARGV[4] ~= '' and ARGV[4] or nil, 0
local user = tier and string.match(group, '^user:(.*)$')
if user then
  limits.learn_tier(user, tier) -- as its submission would
end
for _, blocker in ipairs({ group, shutting.gate(group) }) do
  for _, bucket in ipairs(debts.buckets_of(blocker)) do
    parked = parked + redis.call('ZCARD', key('parked', bucket))
  end
end
return {
  limits.of(group, tier), redis.call('ZCARD', key('waiters', group)), parked, holders.describe_all(group),
  shutting.ends_of(group) or false,
}
