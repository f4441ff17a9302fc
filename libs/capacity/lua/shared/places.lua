-- The place of a job that joins its class: the end, or past the last few whom its boost may pass.
-- use: reservations

local ARRIVAL_STEP = 2 ^ 16

-- Those of a class that stand before its end, the last one first: as many as may be passed, and one more.
local function last_of_class(class, place, count)
  local floor = queue.scores_of(class)
  local before = '(' .. string.format('%.0f', floor + place)
  local found = redis.call('ZREVRANGEBYSCORE', key('queue'), before, floor, 'WITHSCORES', 'LIMIT', 0, count)
  local last = {}
  for at = 1, #found, 2 do
    last[#last + 1] = { id = found[at], place = found[at + 1] - floor }
  end
  return last
end

-- How many of the last may be passed: the first that may not stops it.
local function passable(last, boost, bound)
  for at = 1, math.min(boost, #last) do
    local job = redis.call('HMGET', key('job', last[at].id), 'boost', 'passed')
    if tonumber(job[1]) >= boost or passing.times(last[at].id, job[2]) >= bound then
      return at - 1
    end
  end
  return math.min(boost, #last)
end

-- GIVES the next arrival, its place and whom it passes, the last in line first. Where no number is left it stops one earlier.
local function place_at_end(class, boost, bound)
  local arrival = mark[7] + 1
  local last = boost > 0 and last_of_class(class, arrival * ARRIVAL_STEP, boost + 1) or {}
  for count = passable(last, boost, bound), 1, -1 do
    local left, right = last[count + 1] and last[count + 1].place or 0, last[count].place
    if right - left > 1 then
      local passed = {}
      for at = 1, count do
        passed[at] = last[at].id
      end
      return arrival, left + math.max(1, math.floor((right - left) / 64)), passed
    end
  end
  return arrival, arrival * ARRIVAL_STEP, {}
end

-- GIVES the entry with arrival, place, passed and position; nothing is held yet.
function places.land(id, entry, bound)
  entry.arrival, entry.place, entry.passed = place_at_end(entry.class, entry.boost, bound)
  entry.position = queue.position_of(id, entry)
  return entry
end

-- Holds the place of an entry that has landed.
function places.hold(id, entry, lapses)
  redis.call('HSET', KEYS[1], 'arrivals', entry.arrival)
  queue.join(id, entry)
  if not queue.is_aside(entry) then
    queue.join_line(id, entry)
  end
  passing.reserve(entry.passed)
  reservations.keep(id, entry, lapses)
end
