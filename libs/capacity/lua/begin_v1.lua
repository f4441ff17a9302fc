-- Begins a generation of the view: closed, without a job.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch of the log it is folded from, 2 the new generation's name, never used before, 3 the sequence of the log
--            that its seeds will stand for, 4 the last arrival given, 5 JSON: by name tiers, limits, defaults, paused (scope →
--            JSON of by, reason, since_ms); used: lists of user, day, places; leaving: lists of user, hour, bytes
--   GIVES    OK
--   KEEPS    asked twice it is begun once. What older generations hold is read by nobody from here on.
if redis.call('HGET', KEYS[1], 'generation') == ARGV[2] then
  return redis.status_reply('OK')
end
space = string.sub(KEYS[1], 1, -5) .. ARGV[2] .. ':' -- `view` is four letters

-- use: ended
local function fill(name, fields)
  for field, value in pairs(fields) do
    redis.call('HSET', name, field, value)
  end
end

local standing = cjson.decode(ARGV[5])
fill(key('tiers'), standing.tiers)
fill(key('limits'), standing.limits)
fill(key('defaults'), standing.defaults)
fill(key('paused'), standing.paused)
for _, used in ipairs(standing.used) do
  ended.use_day(unpack(used))
end
for _, left in ipairs(standing.leaving) do
  inputs.leave(left[1], left[3], left[2])
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'generation', ARGV[2], 'applied', ARGV[3], 'open', '0', 'arrivals', ARGV[4])
return redis.status_reply('OK')
