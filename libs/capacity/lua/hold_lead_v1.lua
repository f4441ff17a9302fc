-- A scheduler takes the lead where nobody has it, or keeps it.
--   KEYS[1]  the shard's lead
--   ARGV     1 the asker's name, 2 now (ms or empty), 3 for how long (ms)
--   GIVES    the name of who leads, now (ms)
--   KEEPS    one name at a time; it goes by itself when it is not held again
-- include: time.lua
local leader = redis.call('GET', KEYS[1])
if not leader or leader == ARGV[1] then
  leader = ARGV[1]
  redis.call('SET', KEYS[1], leader, 'PX', ARGV[3])
end
return { leader, now }
