-- Lists the workers that are not silent.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty)
--   GIVES    per worker: name, pool, slots, 1 where it drains, when it was heard (ms), until when it counts (ms), the holders it
--            named that still run
--   KEEPS    changes nothing
-- include: head.lua
-- include: time.lua
-- use: leases
local list = {}
local found = redis.call('ZRANGEBYSCORE', key('workers'), '(' .. now, '+inf', 'WITHSCORES')
for at = 1, #found, 2 do
  local known = redis.call('HMGET', key('worker', found[at]), 'pool', 'slots', 'draining', 'heard', 'holders')
  local running = {}
  for _, holder in ipairs(cjson.decode(known[5])) do
    if leases.is_running(holder) then
      running[#running + 1] = holder
    end
  end
  list[#list + 1] = {
    found[at], known[1], tonumber(known[2]), tonumber(known[3]), tonumber(known[4]), tonumber(found[at + 1]), running,
  }
end
return list
