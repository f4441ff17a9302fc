-- Takes a slot of each of several groups, or none and waits.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 lease, 4 groups (JSON list), 5 owner (<job>:<attempt>, or empty: outside any job),
--            6 how long it is held unless extended (ms), 7 how long to wait (ms; 0: not at all), 8 where a grant is sent to,
--            9 whose it is outside any job (or empty), 10 when it is to be extended and not taken: the end its holder was told
--            (ms; 0: none), else empty, 11 how many leases one user may have outside jobs (or empty: any number)
--   GIVES    granted, ends (ms), again, group, active, group, active … · waits, group, how many go before, until when it is
--            shut (ms), again · full, group, limit, active, until when it is shut (ms) · not_yours ·
--            leases_full, how many the user has
--   KEEPS    first come, first served, and nothing is held while waiting; asked twice it is the same lease or the same wait,
--            outside jobs for as long from now, and for nobody else. A group that the owner's job holds is not taken again.
-- include: head.lua
-- include: time.lua
-- use: catch_up
local lease, owner, ttl, wait_ms = ARGV[3], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])

local user, told, most = ARGV[9], tonumber(ARGV[10]), tonumber(ARGV[11])

local function waits(again)
  local group = redis.call('HGET', key('waiter', lease), 'at')
  return { 'waits', group, redis.call('ZRANK', key('waiters', group), lease), shutting.ends_of(group) or false, again }
end

local function granted(ends, groups)
  local answer = { 'granted', ends, 0 }
  for _, group in ipairs(groups) do
    answer[#answer + 1], answer[#answer + 2] = group, limits.active(group)
  end
  return answer
end

local function wait_for(group, groups)
  local ticket = redis.call('HINCRBY', KEYS[1], 'tickets', 1)
  redis.call('HSET', key('waiter', lease), 'groups', cjson.encode(groups), 'owner', owner, 'reply', ARGV[8], 'ttl', ttl,
    'ticket', ticket, 'user', user)
  redis.call('ZADD', key('deadlines'), now + wait_ms, lease)
  if owner ~= '' then
    redis.call('SADD', key('asking', leases.job_of(owner)), lease)
  end
  leases.count(lease, user)
  leases.wait_at(group, lease, ticket)
  return waits(0)
end

-- How many the user has, where that is as many as one may.
local function too_many()
  if not most or user == '' or redis.call('SCARD', key('leased', user)) < most then
    return false
  end
  local has = leases.counted(user)
  return has >= most and has
end

local function take()
  local groups = leases.wanted_groups(cjson.decode(ARGV[4]), owner)
  if owner ~= '' then
    redis.call('SREM', key('freed', leases.job_of(owner)), lease)
  end
  if #groups == 0 then
    return granted(now + ttl, groups)
  end
  local full = limits.first_full(groups)
  if not full then
    return granted(leases.hold(lease, groups, owner, ttl, user), groups)
  elseif wait_ms <= 0 then
    return { 'full', full, limits.of(full), limits.active(full), shutting.ends_of(full) or false }
  end
  return wait_for(full, groups)
end

-- Whether what is known under this name was asked for by the same user, for the same groups.
local function is_theirs(known)
  local groups, of, whose = unpack(redis.call('HMGET', known, 'groups', 'owner', 'user'))
  return of == '' and whose == user and groups == cjson.encode(leases.wanted_groups(cjson.decode(ARGV[4]), ''))
end

-- Outside jobs to an end that is never earlier than what its holder was told. One that an earlier release gave out counts
-- from here on.
local function held_on()
  local ends = tonumber(redis.call('ZSCORE', key('ends'), lease))
  if owner == '' then
    leases.count(lease, user)
    ends = math.max(ends, now + ttl)
    leases.extend(lease, cjson.decode(redis.call('HGET', key('lease', lease), 'groups')), ends)
  end
  return { 'granted', ends, 1 }
end

local function waits_on()
  if owner == '' then
    redis.call('ZADD', key('deadlines'), 'GT', now + wait_ms, lease)
  end
  return waits(1)
end

-- Its holder was told an end that is not over. Where the groups are shut, as nobody knows who holds them since the view was
-- lost, it is held again; everywhere else the view would know it.
local function hold_again()
  local groups = leases.wanted_groups(cjson.decode(ARGV[4]), '')
  local lost = told <= now
  for _, group in ipairs(groups) do
    lost = lost or not shutting.ends_of(group) or limits.active(group) >= limits.of(group)
  end
  return lost and { 'not_yours' } or { 'granted', leases.hold(lease, groups, '', ttl, user), 1 }
end

catch_up.all()
grants.tell_later()
local held = redis.call('EXISTS', key('lease', lease)) == 1
local waiting = not held and redis.call('EXISTS', key('waiter', lease)) == 1
if owner ~= '' and (not leases.is_running(owner) or leases.was_given_up(lease)) then
  return { 'not_yours' }
elseif owner == '' and (held and not is_theirs(key('lease', lease)) or waiting and not is_theirs(key('waiter', lease))) then
  return { 'not_yours' }
elseif held then
  return held_on()
elseif told then
  return hold_again()
elseif waiting then
  return waits_on()
end
local has = too_many()
return has and { 'leases_full', has } or take()
