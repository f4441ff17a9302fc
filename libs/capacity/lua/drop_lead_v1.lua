-- A scheduler that stops lets another lead at once.
--   KEYS[1]  the shard's lead
--   ARGV     1 the asker's name
--   GIVES    OK
--   KEEPS    another's lead stays
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return redis.status_reply('OK')
