-- The peer of plan: no job is parked, so every plan walks the queue from its beginning, over all that is blocked.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 how many at most
--   GIVES    jobs
--   KEEPS    changes nothing
-- include: head.lua
-- include: time.lua
-- use: limits
local picks, picked, active = {}, {}, {}

local function fits(row)
  for _, group in ipairs(row.groups) do
    active[group] = active[group] or limits.active(group)
    if active[group] + (picked[group] or 0) >= limits.of(group, row.tier) then
      return false
    end
  end
  return true
end

for _, id in ipairs(redis.call('ZRANGE', key('queue'), 0, -1)) do
  local row = cjson.decode(redis.call('HGET', key('job', id), 'shape'))
  if fits(row) then
    picks[#picks + 1] = id
    for _, group in ipairs(row.groups) do
      picked[group] = (picked[group] or 0) + 1
    end
  end
  if #picks == tonumber(ARGV[3]) then
    return picks
  end
end
return picks
