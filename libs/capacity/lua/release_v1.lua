-- Holds a place in the queue for a job of the log whose time has come. Its day was taken long ago.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 job's id, 4 cap of the queue, 5 how often a job may be passed, 6 lapse (ms)
--   GIVES    reserved, arrival, place, passed, position, day · no_room · not_releasable
--   KEEPS    asked twice it is the same reservation. Who finds no room is first in line for it, in the order of asking.
-- include: head.lua
-- include: time.lua
-- use: places
local id, cap, bound, lapses = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), now + ARGV[6]

local function answer(held)
  return { 'reserved', held.arrival, held.place, held.passed, held.position, held.day or false }
end

local job = redis.call('HMGET', key('job', id), 'status', 'shape', 'reservation')
if job[1] ~= 'scheduled' and job[1] ~= 'waiting' then
  return { 'not_releasable' }
elseif job[3] then
  redis.call('ZADD', key('lapses'), lapses, id)
  return answer(cjson.decode(job[3]))
end

local first = redis.call('ZRANGE', key('room'), 0, 0)[1]
if redis.call('ZCARD', key('queue')) >= cap or first and first ~= id then
  redis.call('ZADD', key('room'), 'NX', now, id)
  return { 'no_room' }
end
redis.call('ZREM', key('room'), id)
local row = cjson.decode(job[2])
local entry = { user = row.user, project = row.project, workflow = row.workflow, pool = row.pool, class = row.class,
  priority = row.priority, boost = row.boost, day = row.quota_day, of_row = true }
places.hold(id, places.land(id, entry, bound), lapses)
return answer(entry)
