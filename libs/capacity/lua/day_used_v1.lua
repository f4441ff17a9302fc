-- Counts a user's places of a day that are taken, reserved ones too.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 user, 4 day (since 1970)
--   GIVES    how many
--   KEEPS    changes nothing
-- include: head.lua
-- use: days
return days.used(ARGV[3], ARGV[4])
