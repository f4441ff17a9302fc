-- Workers, and the slots that their pools have by them.

local function add_slots(pool, count)
  if redis.call('HINCRBY', key('slots'), pool, count) == 0 then
    redis.call('HDEL', key('slots'), pool)
  end
end

function workers.drop(worker)
  local known = redis.call('HMGET', key('worker', worker), 'pool', 'slots')
  if known[1] then
    add_slots(known[1], -known[2])
    redis.call('DEL', key('worker', worker))
    redis.call('ZREM', key('workers'), worker)
  end
end

-- A draining one may be given nothing, so it has no slots.
function workers.keep(beat)
  local slots = beat.draining and 0 or beat.slots
  workers.drop(beat.worker)
  add_slots(beat.pool, slots)
  redis.call('HSET', key('worker', beat.worker), 'pool', beat.pool, 'slots', slots, 'draining', beat.draining and 1 or 0)
  redis.call('ZADD', key('workers'), now + beat.ttl_ms, beat.worker)
end
