-- Tells where a queued job stands, and all that keeps it from running now.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 job's id
--   GIVES    null where it is not in the queue, else position · how often it was passed · score as text · scopes that pause it ·
--            per full group: name, limit, active, since (ms) · slots of its pool · active there · 1 where a quarantine shuts a group
--   KEEPS    changes nothing
-- include: head.lua
-- include: time.lua
-- use: passing
-- use: queue
-- use: holders
local id = ARGV[3]

local function pauses_of(row)
  local scopes = { 'all', 'priority:' .. row.priority, 'pool:' .. row.pool, unpack(queue.owners_of(row)) }
  local pauses = {}
  for at, pause in ipairs(redis.call('HMGET', key('paused'), unpack(scopes))) do
    if pause then
      pauses[#pauses + 1] = scopes[at]
    end
  end
  return pauses
end

local function obstacles_of(row)
  local obstacles, shut = {}, 0
  for _, group in ipairs(row.groups) do
    local limit, active = limits.of(group, row.tier), limits.active(group)
    if active >= limit then
      obstacles[#obstacles + 1] = { group, limit, active, holders.full_since(group) }
    end
    shut = quarantine.shuts(group) and 1 or shut
  end
  return obstacles, shut
end

local job = redis.call('HMGET', key('job', id), 'shape', 'passed')
local row = job[1] and cjson.decode(job[1])
if not row or not row.place then
  return false
end
local obstacles, shut = obstacles_of(row)
return {
  queue.position_of(id, row), passing.times(id, job[2]), string.format('%.0f', queue.score_of(row)), pauses_of(row), obstacles,
  limits.slots_of(row.pool), limits.active('pool:' .. row.pool), shut,
}
