-- What this call has granted to waiters, and what was granted where no answer could carry it.
local made = {} -- lease, owner, reply, when it ends

function grants.add(grant)
  made[#made + 1] = grant
end

-- As answered, what was kept first.
function grants.told()
  if not mark[6] then
    return made
  end
  local all = {}
  for at, text in ipairs(redis.call('LRANGE', key('untold'), 0, -1)) do
    all[at] = cjson.decode(text)
  end
  for _, grant in ipairs(made) do
    all[#all + 1] = grant
  end
  redis.call('DEL', key('untold'))
  redis.call('HDEL', KEYS[1], 'untold')
  return all
end

-- This answer carries none: the next that can will.
function grants.tell_later()
  for _, grant in ipairs(made) do
    redis.call('RPUSH', key('untold'), cjson.encode(grant))
    redis.call('HSET', KEYS[1], 'untold', 1)
  end
end
