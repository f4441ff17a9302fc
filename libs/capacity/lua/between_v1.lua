-- Finds a number for a job right before or right after another.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 job's id, 4 'before' or 'after', 5 the other's id
--   GIVES    between, class, place · no_gap, class · not_queued, id
--   KEEPS    changes nothing. Behind the last one is still in front of the next arrival.
-- include: head.lua
local CLASS_STEP, ARRIVAL_STEP = 2 ^ 46, 2 ^ 16
local job, other = ARGV[3], ARGV[5]

local function row_of(id)
  local row = redis.call('HMGET', key('job', id), 'shape', 'reservation')
  row = row[1] and cjson.decode(row[1])
  return row and row.place and row
end

-- The place of the neighbour of `other` in this direction, in its class and without the job itself; nil: there is none.
local function neighbour(class, step)
  local rank = redis.call('ZRANK', key('queue'), other)
  for distance = 1, 2 do
    local at = rank + step * distance
    local found = at >= 0 and redis.call('ZRANGE', key('queue'), at, at, 'WITHSCORES') or {}
    local place = found[2] and found[2] - class * CLASS_STEP
    if not place or place < 0 or place >= CLASS_STEP then
      return nil
    elseif found[1] ~= job then
      return place
    end
  end
  return nil
end

for _, id in ipairs({ job, other }) do
  if not row_of(id) then
    return { 'not_queued', id }
  end
end
local row = row_of(other)
local left, right = row.place, row.place
if ARGV[4] == 'before' then
  left = neighbour(row.class, -1) or 0
else
  right = neighbour(row.class, 1) or (mark[7] + 1) * ARRIVAL_STEP
end
if right - left < 2 then
  return { 'no_gap', row.class }
end
return { 'between', row.class, left + math.max(1, math.floor((right - left) / 64)) }
