-- A job that has ended leaves the view, with its user's tier where it was their last one. Sums stay: that it took a place of
-- its day, and the bytes of its input until that goes.
-- use: passing
-- use: inputs

function ended.forget(id)
  local job = redis.call('HMGET', key('job', id), 'status', 'shape')
  if not job[1] or not passing.is_end(job[1]) then
    return
  end
  local row = cjson.decode(job[2])
  if row.quota_day then
    redis.call('SREM', key('quota', row.user, row.quota_day), id)
    ended.use_day(row.user, row.quota_day, 1)
  end
  if row.input_until then
    inputs.forget(row)
  end
  redis.call('ZREM', key('owned', row.user), id)
  if redis.call('EXISTS', key('owned', row.user)) == 0 then
    redis.call('HDEL', key('tiers'), row.user)
  end
  redis.call('DEL', key('job', id))
end

function ended.use_day(user, day, count)
  redis.call('HINCRBY', key('used', day), user, count)
  redis.call('ZADD', key('days'), day, day)
end

-- Nobody asks about days that are over, by whichever clock.
function ended.sweep()
  for _, day in ipairs(redis.call('ZRANGEBYSCORE', key('days'), '-inf', '(' .. math.floor(now / 86400000) - 1)) do
    redis.call('DEL', key('used', day))
    redis.call('ZREM', key('days'), day)
  end
end
