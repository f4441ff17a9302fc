-- The floor: what it costs to ask the server anything and have it write one field.
--   KEYS[1]  the shard's view
--   ARGV     whatever the verb that is compared is given
--   GIVES    OK
--   KEEPS    nothing
redis.call('HSET', KEYS[1], 'touched', '1')
return redis.status_reply('OK')
