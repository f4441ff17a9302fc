-- Shuts a group: nobody gets a slot of it until then.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 group, 4 until when (ms)
--   GIVES    the grants
--   KEEPS    of two ends the later counts; who holds a slot keeps it
-- include: head.lua
-- include: time.lua
-- use: catch_up
catch_up.all()
if tonumber(ARGV[4]) > now then
  shutting.shut(ARGV[3], ARGV[4])
end
return grants.told()
