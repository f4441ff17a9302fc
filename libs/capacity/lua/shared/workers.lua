-- Workers, and the slots that their pools have by them.

local function add_slots(pool, count)
  if redis.call('HINCRBY', key('slots'), pool, count) == 0 then
    redis.call('HDEL', key('slots'), pool)
  end
end

function workers.drop(worker)
  local known = redis.call('HMGET', key('worker', worker), 'pool', 'slots', 'draining')
  if known[1] then
    add_slots(known[1], known[3] == '0' and -known[2] or 0)
    redis.call('DEL', key('worker', worker))
    redis.call('ZREM', key('workers'), worker)
  end
end

-- A draining one may be given nothing, so its slots do not count.
function workers.keep(beat)
  workers.drop(beat.worker)
  add_slots(beat.pool, beat.draining and 0 or beat.slots)
  redis.call('HSET', key('worker', beat.worker), 'pool', beat.pool, 'slots', beat.slots, 'draining', beat.draining and 1 or 0,
    'heard', now, 'holders', cjson.encode(beat.holders))
  redis.call('ZADD', key('workers'), now + beat.ttl_ms, beat.worker)
end
