-- Tells everything that can be observed of the view. For tests and for engineers who look inside on a bad day: it reads every
-- key of the generation in one go.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty)
--   GIVES    generation · applied · queue, as queue_v1 · then lists of name, value, …: status by job, holders by group, waiters by
--            group, jobs by <user>:<day>, users and places by day, timers, limits, pauses (JSON), slots by pool, room, leases,
--            members by name, lapses, claims, spent, shut, published, stored bytes, ends of inputs
--   KEEPS    changes nothing
-- include: head.lua
-- include: time.lua
-- use: listing
-- use: holders
local found = { job = {}, held = {}, waiters = {}, quota = {}, used = {}, members = {}, worker = {} }

local function scan()
  local cursor = '0'
  repeat
    local page = redis.call('SCAN', cursor, 'MATCH', space .. '*', 'COUNT', 1000)
    cursor = page[1]
    for _, name in ipairs(page[2]) do
      local kind, rest = string.match(string.sub(name, #space + 1), '^(%w+):(.*)$')
      if found[kind] then
        found[kind][rest] = name -- a page may name a key again
      end
    end
  until cursor == '0'
end

local function list_by(kind, read)
  local list = {}
  for name, redis_key in pairs(found[kind]) do
    local value = read(redis_key, name)
    if value and #value > 0 then
      list[#list + 1] = name
      list[#list + 1] = value
    end
  end
  return list
end

local function all_of(redis_key)
  return redis.call('ZRANGE', redis_key, 0, -1)
end

local function with_scores(redis_key)
  return redis.call('ZRANGE', redis_key, 0, -1, 'WITHSCORES')
end

local function slots_by_pool()
  local list, seen = {}, {}
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', key('workers'), '(' .. now, '+inf')) do
    local known = redis.call('HMGET', key('worker', worker), 'pool', 'draining')
    if known[2] == '0' and not seen[known[1]] then
      seen[known[1]] = true
      list[#list + 1] = known[1]
      list[#list + 1] = limits.slots_of(known[1])
    end
  end
  return list
end

scan()
return {
  mark[3],
  tonumber(mark[4]),
  listing.queue(0, -1),
  list_by('job', function(redis_key) return redis.call('HGET', redis_key, 'status') end),
  list_by('held', function(_, group) return holders.of(group) end),
  list_by('waiters', all_of),
  list_by('quota', function(redis_key) return redis.call('SMEMBERS', redis_key) end),
  list_by('used', function(redis_key) return redis.call('HGETALL', redis_key) end),
  with_scores(key('timers')),
  redis.call('HGETALL', key('limits')),
  redis.call('HGETALL', key('paused')),
  slots_by_pool(),
  all_of(key('room')),
  with_scores(key('leases')),
  list_by('members', all_of),
  with_scores(key('lapses')),
  with_scores(key('claims')),
  with_scores(key('spent')),
  with_scores(key('shut')),
  redis.call('HGETALL', key('published')),
  redis.call('HGETALL', key('stored')),
  with_scores(key('input_ends')),
}
