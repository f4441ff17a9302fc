-- Tells how a group stands.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 group, 4 tier of the job that would ask (or empty)
--   GIVES    limit, how many wait for a slot, how many queued jobs it blocks, per holder: name, owner, user, worker, since (ms),
--            end (ms) · until when it is shut (ms)
--   KEEPS    changes nothing
-- include: head.lua
-- include: time.lua
-- use: holders
local group, tier = ARGV[3], ARGV[4] ~= '' and ARGV[4] or nil
local user = tier and string.match(group, '^user:(.*)$')
if user then
  limits.learn_tier(user, tier) -- as its submission would
end

-- All that name it, reserved ones too, where it has no slot for the first of them: of a project each tier has its own limit.
local function count_blocked()
  local first = redis.call('ZRANGE', key('members', group), 0, 0)[1]
  local shape = first and redis.call('HGET', key('job', first), 'shape')
  if not first or not limits.is_full(group, shape and cjson.decode(shape).tier or nil) then
    return 0
  end
  return redis.call('ZCARD', key('members', group))
end

return {
  limits.of(group, tier), redis.call('ZCARD', key('waiters', group)), count_blocked(), holders.describe_all(group),
  shutting.ends_of(group) or false,
}
