-- A job that has ended leaves the view, with its place of the day, and with its user's tier where it was their last one.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 job's id
--   GIVES    OK
--   KEEPS    a job that has not ended stays
-- include: head.lua
-- use: passing
local id = ARGV[3]
local job = redis.call('HMGET', key('job', id), 'status', 'shape')
if job[1] and passing.is_end(job[1]) then
  local row = cjson.decode(job[2])
  for kind in pairs(row.timers or {}) do
    redis.call('ZREM', key('timers'), kind .. ':' .. id)
  end
  if row.quota_day then
    redis.call('SREM', key('quota', row.user, row.quota_day), id)
  end
  redis.call('ZREM', key('owned', row.user), id)
  if redis.call('EXISTS', key('owned', row.user)) == 0 then
    redis.call('HDEL', key('tiers'), row.user)
  end
  redis.call('ZREM', key('room'), id)
  redis.call('DEL', key('job', id))
end
return redis.status_reply('OK')
