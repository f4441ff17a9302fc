-- Tells where jobs stand that have not started, and all that keeps them from running now. Several at once, as most of them wait
-- for the same groups, which are looked at once.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 and on: jobs' ids
--   GIVES    of each null where it is neither queued nor scheduled nor waiting, else position and score as text (null: not queued) ·
--            how often it was passed · 1 where it waits for room · per pause: scope, JSON of by, reason, since_ms · per group that
--            is full or shut, and per gate that is shut: name, limit, active, since (ms), holders as in group_v1, until when (ms) ·
--            slots of its pool · active there · 1 where a quarantine shuts a group
--   KEEPS    changes nothing
-- include: head.lua
-- include: time.lua
-- use: passing
-- use: queue
-- use: holders
local active, told, slots = {}, {}, {} -- group → how many, what is told of it; pool → slots

local function active_of(group)
  active[group] = active[group] or limits.active(group)
  return active[group]
end

local function obstacle(group, row)
  told[group] = told[group] or { holders.full_since(group), holders.describe_all(group), shutting.ends_of(group) or false }
  return { group, limits.of(group, row.tier), active_of(group), unpack(told[group]) }
end

local function obstacles_of(row)
  local obstacles, known, quarantined = {}, {}, 0
  limits.expect(row.groups)
  for _, group in ipairs(row.groups) do
    known[group] = true
    if shutting.ends_of(group) or active_of(group) >= limits.of(group, row.tier) then
      obstacles[#obstacles + 1] = obstacle(group, row)
    end
    quarantined = quarantine.shuts(group) and 1 or quarantined
  end
  for _, gate in ipairs(row.gates or {}) do
    if not known[gate] and shutting.ends_of(gate) then
      obstacles[#obstacles + 1] = obstacle(gate, row)
    end
  end
  return obstacles, quarantined
end

local function outlook(id)
  local job = redis.call('HMGET', key('job', id), 'shape', 'passed', 'status')
  local row = job[1] and cjson.decode(job[1])
  if not row or not row.place and job[3] ~= 'scheduled' and job[3] ~= 'waiting' then
    return false
  end
  local obstacles, quarantined = obstacles_of(row)
  slots[row.pool] = slots[row.pool] or limits.slots_of(row.pool)
  return {
    row.place and queue.position_of(id, row) or false, row.place and string.format('%.0f', queue.score_of(row)) or false,
    passing.times(id, job[2]), not row.place and redis.call('ZSCORE', key('room'), id) and 1 or 0, queue.pauses_of(row), obstacles,
    slots[row.pool], active_of('pool:' .. row.pool), quarantined,
  }
end

local outlooks = {}
for at = 3, #ARGV do
  outlooks[at - 2] = outlook(ARGV[at])
end
return outlooks
