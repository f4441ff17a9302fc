-- Nobody could be heard for a while: all that ends by silence ends that much later.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 by how much (ms), 4 a name for this call
--   GIVES    OK
--   KEEPS    the same call twice in a row counts once. Reservations and timers end when they end.
-- include: head.lua
if redis.call('HGET', KEYS[1], 'prolonged') == ARGV[4] then
  return redis.status_reply('OK')
end
redis.call('HSET', KEYS[1], 'prolonged', ARGV[4])
for _, name in ipairs({ key('leases'), key('ends'), key('workers'), key('deadlines') }) do
  for _, member in ipairs(redis.call('ZRANGE', name, 0, -1)) do
    redis.call('ZINCRBY', name, ARGV[3], member)
  end
end
for _, lease in ipairs(redis.call('ZRANGE', key('ends'), 0, -1)) do
  for _, group in ipairs(cjson.decode(redis.call('HGET', key('lease', lease), 'groups'))) do
    redis.call('ZINCRBY', key('held', group), ARGV[3], lease)
  end
end
if mark[5] then
  redis.call('HINCRBY', KEYS[1], 'quarantine_until', ARGV[3])
end
return redis.status_reply('OK')
