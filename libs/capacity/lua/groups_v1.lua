-- Lists the groups that there is something to say of: a limit was set, somebody holds a slot or waits for one, or it is shut.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty)
--   GIVES    their names
--   KEEPS    changes nothing
-- include: head.lua
-- include: time.lua
-- use: limits
local known, names = {}, {}

local function add(group)
  if not known[group] then
    known[group], names[#names + 1] = true, group
  end
end

local function add_all(groups)
  for _, group in ipairs(groups) do
    add(group)
  end
end

local function add_limits()
  add_all(redis.call('HKEYS', key('limits')))
  for _, name in ipairs(redis.call('HKEYS', key('defaults'))) do
    if name ~= 'group' and not string.find(name, '/', 1, true) then -- those are of kinds of groups
      add(name)
    end
  end
  for _, pool in ipairs(redis.call('HKEYS', key('slots'))) do
    if limits.slots_of(pool) > 0 then
      add('pool:' .. pool)
    end
  end
end

local function add_held()
  for _, holder in ipairs(redis.call('ZRANGE', key('leases'), 0, -1)) do
    local row = cjson.decode(redis.call('HGET', key('job', string.match(holder, '^(.*):')), 'shape'))
    add_all(row.groups)
    add('pool:' .. row.pool)
  end
  for _, lease in ipairs(redis.call('ZRANGEBYSCORE', key('ends'), '(' .. now, '+inf')) do
    add_all(cjson.decode(redis.call('HGET', key('lease', lease), 'groups')))
  end
  for _, id in ipairs(redis.call('ZRANGE', key('claims'), 0, -1)) do
    add_all(cjson.decode(redis.call('HGET', key('job', id), 'claim')).groups)
  end
end

add_limits()
add_held()
add_all(redis.call('ZRANGE', key('awaited'), 0, -1))
add_all(redis.call('ZRANGEBYSCORE', key('shut'), '(' .. now, '+inf'))
return names
