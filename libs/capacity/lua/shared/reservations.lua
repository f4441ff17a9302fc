-- A place in the queue and a place of a day, held under a job's id until an event of the job is folded, or until it lapses:
-- its time (`submissions.reservation_s`) is over, and all that was in the log is folded.
-- It is kept as JSON: an entry of the queue with boost, arrival, passed and position, or a user's day alone. No number in it has
-- more than the 14 digits that cjson writes: a place is below 2^46.
-- use: queue
-- use: passing

-- Takes back all it holds. `of_row`: its day is the row's, not its own.
function reservations.drop(id, text)
  local held = cjson.decode(text)
  if held.place then
    queue.quit(id, held)
    passing.take_back(held.passed)
  end
  if held.day and not held.of_row then
    redis.call('SREM', key('quota', held.user, held.day), id)
  end
  redis.call('ZREM', key('lapses'), id)
  redis.call('HDEL', key('job', id), 'reservation')
end

function reservations.keep(id, held, lapses)
  redis.call('HSET', key('job', id), 'reservation', cjson.encode(held), 'boost', held.boost)
  redis.call('ZADD', key('lapses'), lapses, id)
end

-- Those that came to nothing, and GIVES their jobs. Called where all that was in the log is folded.
function reservations.lapse()
  local lapsed = redis.call('ZRANGEBYSCORE', key('lapses'), '-inf', now)
  for _, id in ipairs(lapsed) do
    local job = redis.call('HMGET', key('job', id), 'reservation', 'shape')
    reservations.drop(id, job[1])
    if not job[2] then
      redis.call('DEL', key('job', id))
    end
  end
  return lapsed
end
