-- A job's row takes the place of its old one, and every index with it.
-- `shape` is all that indexes are made of, as the caller's own JSON text.
-- use: queue
-- use: leases
-- use: inputs

function rows.contains(list, wanted)
  for _, item in ipairs(list) do
    if item == wanted then
      return true
    end
  end
  return false
end

local function groups_held_by(row)
  local groups = { unpack(row.groups) }
  groups[#groups + 1] = 'pool:' .. row.pool
  return groups
end

-- What a holder that went away held besides its own slots, into `freed`.
local function abandon(row, freed)
  redis.call('ZREM', key('leases'), row.holder)
  redis.call('SREM', key('unheard'), row.holder)
  redis.call('DEL', key('freed', row.id))
  for _, waiter in ipairs(redis.call('SMEMBERS', key('asking', row.id))) do
    leases.stop_waiting(waiter)
  end
  for _, lease in ipairs(redis.call('SMEMBERS', key('inner', row.id))) do
    for _, group in ipairs(leases.let_go(lease)) do
      freed[#freed + 1] = group
    end
  end
end

-- GIVES the groups in which a slot came free, one name for each slot.
local function leave_slots(old, row)
  local freed, stays = {}, {}
  if not old.holder then
    return freed
  elseif old.holder == row.holder then
    stays = groups_held_by(row)
  else
    abandon(old, freed)
  end
  for _, group in ipairs(groups_held_by(old)) do
    if not rows.contains(stays, group) then
      redis.call('ZREM', key('held', group), old.holder)
      freed[#freed + 1] = group
    end
  end
  return freed
end

local function take_slots(old, row, lease_ms)
  for _, group in ipairs(groups_held_by(row)) do
    redis.call('ZADD', key('held', group), '+inf', row.holder)
  end
  if old.holder ~= row.holder then
    redis.call('ZADD', key('leases'), now + lease_ms, row.holder)
  end
end

local function move_timers(id, old, row)
  local before, after = old.timers or {}, row.timers or {}
  for kind in pairs(before) do
    if not after[kind] then
      redis.call('ZREM', key('timers'), kind .. ':' .. id)
    end
  end
  for kind, due in pairs(after) do
    if before[kind] ~= due then
      redis.call('ZADD', key('timers'), due, kind .. ':' .. id)
    end
  end
end

-- How many queued jobs each tier has.
local function count_tier(tier, more)
  if redis.call('HINCRBY', key('queued'), tier, more) == 0 then
    redis.call('HDEL', key('queued'), tier)
  end
end

local function move_day(id, old, row)
  if old.user == row.user and old.quota_day == row.quota_day then
    return
  end
  if old.quota_day then
    redis.call('SREM', key('quota', old.user, old.quota_day), id)
  end
  if row.quota_day then
    redis.call('SADD', key('quota', row.user, row.quota_day), id)
  end
end

-- Out of the indexes that it may stand in no more. GIVES the groups in which a slot came free.
local function take_back(was, old, row, status)
  if old.place then
    queue.quit(row.id, old)
    count_tier(old.tier, -1)
  end
  if (was.status == 'scheduled' or was.status == 'waiting') and status ~= 'scheduled' and status ~= 'waiting' then
    redis.call('ZREM', key('room'), row.id)
  end
  return leave_slots(old, row)
end

-- GIVES its spot.
local function put(old, row, lease_ms)
  move_timers(row.id, old, row)
  move_day(row.id, old, row)
  if row.arrival and row.arrival > tonumber(mark[7]) then
    mark[7] = row.arrival
    redis.call('HSET', KEYS[1], 'arrivals', row.arrival)
  end
  if row.holder then
    take_slots(old, row, lease_ms)
  end
  if not row.place then
    return row.holder and 'held' or ''
  end
  queue.join(row.id, row)
  count_tier(row.tier, 1)
  if not queue.is_aside(row) then
    queue.join_line(row.id, row)
  end
  return 'queued'
end

-- The new row in the place of the old one. `was`: shape and status, or {}; `is`: the row's shape as text, and the
-- fields that are kept beside it. GIVES the groups in which a slot came free.
function rows.replace(was, row, is, lease_ms)
  local old = was.shape and cjson.decode(was.shape) or {}
  local freed = take_back(was, old, row, is.status)
  local spot = put(old, row, lease_ms)
  redis.call('HSET', key('job', row.id), 'shape', is.shape, 'spot', spot, 'boost', row.boost, 'passed', is.passed,
    'status', is.status, 'seq', is.seq, 'cancelling', is.cancelling, 'worker', is.worker, 'doc', is.doc)
  if not was.shape then
    redis.call('ZADD', key('owned', row.user), row.first_seq, row.id)
  end
  if not was.shape or old.input ~= row.input or old.input_until ~= row.input_until then
    inputs.fold(row)
  end
  return freed
end
