-- Hears a worker: that it lives, what it runs, what that holds.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 JSON: worker, pool, slots, draining, holders, leases (lease, owner, groups), ttl_ms
--   GIVES    per holder kept, cancel or not_yours, in the order named · the leases that are not its any more · the grants
--   KEEPS    what runs is held, also above a limit. A lease that was freed or given up is not held
--            again.
-- include: head.lua
-- include: time.lua
-- use: reopening
-- use: workers
local beat = cjson.decode(ARGV[3])

local function hear_holder(holder)
  if not leases.is_running(holder) then
    return 'not_yours'
  end
  redis.call('ZADD', key('leases'), now + beat.ttl_ms, holder)
  redis.call('SREM', key('unheard'), holder)
  return redis.call('HGET', key('job', leases.job_of(holder)), 'cancelling') == '1' and 'cancel' or 'kept'
end

-- Whether the lease is its worker's still; one that the view does not know is held again, as its stage goes on.
local function hear_lease(named)
  if not leases.is_running(named.owner) or redis.call('SISMEMBER', key('freed', leases.job_of(named.owner)), named.lease) == 1 then
    return false
  end
  if leases.was_given_up(named.lease) then
    return false
  end
  local known = redis.call('HMGET', key('lease', named.lease), 'groups', 'ttl')
  if known[1] then
    leases.extend(named.lease, cjson.decode(known[1]), now + known[2])
    return true
  end
  local groups = leases.wanted_groups(named.groups, named.owner)
  if #groups > 0 then
    leases.hold(named.lease, groups, named.owner, beat.ttl_ms)
  end
  return true
end

workers.keep(beat)
local heard, lost = {}, {}
for at, holder in ipairs(beat.holders) do
  heard[at] = hear_holder(holder)
end
for _, named in ipairs(beat.leases) do
  if not hear_lease(named) then
    lost[#lost + 1] = named.lease
  end
end
if mark[5] then
  reopening.if_over()
end
return { heard, lost, grants.told() }
