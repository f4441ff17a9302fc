-- Opens the view that was made: decisions may be made on it.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 generation, 4 how long the groups inside running jobs stay shut at most (ms),
--            5 how long those stay shut whose slots may be held outside jobs (ms), 6 which those are (JSON list)
--   GIVES    OK
--   KEEPS    a view is opened once; with running jobs it opens in quarantine
-- include: building.lua
-- include: time.lua
-- use: shutting
if mark[2] == '1' then
  return redis.status_reply('OK')
end
local running, quarantine_ms = redis.call('ZRANGE', key('leases'), 0, -1), tonumber(ARGV[4])
if #running > 0 and quarantine_ms > 0 then
  for _, holder in ipairs(running) do
    redis.call('SADD', key('unheard'), holder)
  end
  redis.call('HSET', KEYS[1], 'quarantine_until', now + quarantine_ms)
end
for _, group in ipairs(cjson.decode(ARGV[6])) do
  shutting.shut(group, string.format('%.0f', now + ARGV[5]))
end
redis.call('HSET', KEYS[1], 'open', '1')
return redis.status_reply('OK')
