-- Slots held inside a job or outside any, those who wait for one, and what a freed slot sets off.
-- A waiter holds nothing: it gets all its groups at once, or moves to the one that is full now.
-- use: limits
-- use: grants

function leases.job_of(owner)
  return string.match(owner, '^(.*):')
end

function leases.is_running(holder)
  return redis.call('ZSCORE', key('leases'), holder) ~= false
end

-- Then a stage does not hold it again, whatever was under way: it would be held by nobody.
function leases.was_given_up(lease)
  return tonumber(redis.call('ZSCORE', key('given_up'), lease) or 0) > now
end

-- Each once, without those that the owner's job holds itself.
function leases.wanted_groups(groups, owner)
  local wanted, seen = {}, {}
  local shape = owner ~= '' and redis.call('HGET', key('job', leases.job_of(owner)), 'shape')
  for _, group in ipairs(shape and cjson.decode(shape).groups or {}) do
    seen[group] = true
  end
  for _, group in ipairs(groups) do
    if not seen[group] then
      seen[group], wanted[#wanted + 1] = true, group
    end
  end
  return wanted
end

function leases.extend(lease, groups, ends)
  for _, group in ipairs(groups) do
    redis.call('ZADD', key('held', group), ends, lease)
  end
  redis.call('ZADD', key('ends'), ends, lease)
end

-- What a user holds or waits for outside any job.
function leases.count(lease, user)
  if user ~= '' then
    redis.call('SADD', key('leased', user), lease)
  end
end

-- How many those are, without what the scripts of an earlier release have ended: they knew nothing of this count.
function leases.counted(user)
  for _, lease in ipairs(redis.call('SMEMBERS', key('leased', user))) do
    if redis.call('EXISTS', key('lease', lease), key('waiter', lease)) == 0 then
      redis.call('SREM', key('leased', user), lease)
    end
  end
  return redis.call('SCARD', key('leased', user))
end

local function discount(lease, user)
  if user and user ~= '' then
    redis.call('SREM', key('leased', user), lease)
  end
end

-- `user`: whose it is, outside any job; nil inside one.
function leases.hold(lease, groups, owner, ttl, user)
  leases.extend(lease, groups, now + ttl)
  redis.call('HSET', key('lease', lease), 'groups', cjson.encode(groups), 'owner', owner, 'ttl', ttl, 'since', now, 'user',
    user or '')
  if owner ~= '' then
    redis.call('SADD', key('inner', leases.job_of(owner)), lease)
  end
  leases.count(lease, user or '')
  return now + ttl
end

-- Who asked for it outside any job, whether it is held or waited for; nil: there is none.
function leases.user_of(lease)
  return redis.call('HGET', key('lease', lease), 'user') or redis.call('HGET', key('waiter', lease), 'user')
end

-- The groups whose slots came free; none where there is no such lease.
function leases.let_go(lease)
  local held = redis.call('HMGET', key('lease', lease), 'groups', 'owner', 'user')
  if not held[1] then
    return {}
  end
  local groups = cjson.decode(held[1])
  for _, group in ipairs(groups) do
    redis.call('ZREM', key('held', group), lease)
  end
  redis.call('DEL', key('lease', lease))
  redis.call('ZREM', key('ends'), lease)
  if held[2] ~= '' then
    redis.call('SREM', key('inner', leases.job_of(held[2])), lease)
  end
  discount(lease, held[3])
  return groups
end

-- ── waiting ─────────────────────────────────────────────────────────────────

function leases.wait_at(group, id, ticket)
  redis.call('ZADD', key('waiters', group), ticket, id)
  redis.call('ZADD', key('awaited'), 0, group)
  redis.call('HSET', key('waiter', id), 'at', group)
end

local function leave_line_of(group, id)
  redis.call('ZREM', key('waiters', group), id)
  if redis.call('EXISTS', key('waiters', group)) == 0 then
    redis.call('ZREM', key('awaited'), group)
  end
end

function leases.stop_waiting(id)
  local waiter = redis.call('HMGET', key('waiter', id), 'at', 'owner', 'user')
  if waiter[1] then
    leave_line_of(waiter[1], id)
    redis.call('ZREM', key('deadlines'), id)
    redis.call('DEL', key('waiter', id))
    if waiter[2] ~= '' then
      redis.call('SREM', key('asking', leases.job_of(waiter[2])), id)
    end
    discount(id, waiter[3])
  end
end

-- The first in line of a group that has a slot: it gets all it asked for, moves to where it waits now, or was too late.
local function look_at(id)
  local waiter = redis.call('HMGET', key('waiter', id), 'groups', 'owner', 'reply', 'ttl', 'ticket', 'at', 'user')
  if tonumber(redis.call('ZSCORE', key('deadlines'), id)) <= now then
    return leases.stop_waiting(id)
  end
  local groups = cjson.decode(waiter[1])
  local full = limits.first_full(groups)
  if full then
    leave_line_of(waiter[6], id)
    return leases.wait_at(full, id, waiter[5])
  end
  leases.stop_waiting(id)
  grants.add({ id, waiter[2], waiter[3], leases.hold(id, groups, waiter[2], tonumber(waiter[4]), waiter[7]) })
end

-- First come, first served, for as long as the group has a slot.
local function wake(group)
  local first = redis.call('ZRANGE', key('waiters', group), 0, 0)[1]
  while first and not limits.is_full(group) do
    look_at(first)
    first = redis.call('ZRANGE', key('waiters', group), 0, 0)[1]
  end
end

-- In name order, so that it is the same for each asker.
function leases.wake(groups)
  if redis.call('EXISTS', key('awaited')) == 1 then
    table.sort(groups)
    for _, group in ipairs(groups) do
      wake(group)
    end
  end
end
