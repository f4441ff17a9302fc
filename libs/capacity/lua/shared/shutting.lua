-- Groups of which nobody gets a slot for a while: a provider has asked for a pause, or nobody knows who holds them since
-- the view was lost. `shut` of the view says that there are any.
local ends -- group → until when

local function read()
  ends = {}
  local found = redis.call('ZRANGE', key('shut'), 0, -1, 'WITHSCORES')
  for at = 1, #found, 2 do
    ends[found[at]] = tonumber(found[at + 1])
  end
end

-- Until when the group is shut; nil: it is not.
function shutting.ends_of(group)
  if not mark[8] then
    return nil
  elseif not ends then
    read()
  end
  return ends[group] and ends[group] > now and ends[group] or nil
end

function shutting.shut(group, till)
  redis.call('ZADD', key('shut'), 'GT', till, group)
  redis.call('HSET', KEYS[1], 'shut', 1)
end

-- Opens those whose time is over, and GIVES them.
function shutting.open()
  local over = redis.call('ZRANGEBYSCORE', key('shut'), '-inf', now)
  for _, group in ipairs(over) do
    redis.call('ZREM', key('shut'), group)
  end
  if redis.call('EXISTS', key('shut')) == 0 then
    redis.call('HDEL', KEYS[1], 'shut')
  end
  return over
end
