-- Whom a job passed is counted twice over: by the log, in `passed` of the job; by reservations that stand, in `passing`.

function passing.is_end(status)
  return status == 'ready' or status == 'failed' or status == 'cancelled'
end

function passing.times(id, by_the_log)
  return tonumber(by_the_log or 0) + tonumber(redis.call('HGET', key('passing'), id) or 0)
end

-- What the log says of jobs that are known and have not ended, under a row or a reservation.
function passing.count(passed)
  for _, id in ipairs(passed) do
    local job = redis.call('HMGET', key('job', id), 'status', 'reservation')
    if job[2] or job[1] and not passing.is_end(job[1]) then
      redis.call('HINCRBY', key('job', id), 'passed', 1)
    end
  end
end

function passing.reserve(passed)
  for _, id in ipairs(passed) do
    redis.call('HINCRBY', key('passing'), id, 1)
  end
end

function passing.take_back(passed)
  for _, id in ipairs(passed) do
    if redis.call('HINCRBY', key('passing'), id, -1) == 0 then
      redis.call('HDEL', key('passing'), id)
    end
  end
end
