-- Counts the bytes of inputs that are kept, reserved ones too.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 user (empty: all)
--   GIVES    how many
--   KEEPS    changes nothing
-- include: head.lua
return tonumber(redis.call('HGET', key('stored'), ARGV[3]) or 0)
