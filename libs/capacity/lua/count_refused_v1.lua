-- Counts a submission that was refused, in its hour.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 reason
--   GIVES    OK
--   KEEPS    a figure for operators, and no fact: a repeat counts twice
-- include: head.lua
-- include: time.lua
-- use: refusals
redis.call('HINCRBY', key('refused'), refusals.field(ARGV[3]), 1)
return redis.status_reply('OK')
