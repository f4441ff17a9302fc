-- Opens the view that was made: decisions may be made on it.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 generation, 4 how long the groups inside running jobs stay shut at most (ms)
--   GIVES    OK
--   KEEPS    a view is opened once; with running jobs it opens in quarantine
-- include: building.lua
-- include: time.lua
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
redis.call('HSET', KEYS[1], 'open', '1')
return redis.status_reply('OK')
