-- Tells how many submissions were refused, by hour and reason, in this hour and the 23 before.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty)
--   GIVES    <start of the hour, ms>:<reason>, how many, …
--   KEEPS    changes nothing
-- include: head.lua
-- include: time.lua
-- use: refusals
local list, all = {}, redis.call('HGETALL', key('refused'))
for at = 1, #all, 2 do
  if refusals.counts(all[at]) then
    list[#list + 1], list[#list + 2] = all[at], all[at + 1]
  end
end
return list
