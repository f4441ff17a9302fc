-- Holds a place in the queue and a place of a day for a job that is about to be appended, all or none.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 JSON: id, user, project, workflow, pool, class, priority, boost, takes_day, later,
--            first_day (days since 1970), per_day, horizon_days, cap, user_share, passed_bound, lapse_ms
--   GIVES    known, status, seq · reserved, arrival, place, passed, position, day · deferred, day · horizon_full, last day ·
--            busy, queued, slots · share_full, held
--   KEEPS    asked twice it is the same reservation; nothing is held where the answer is a refusal
-- include: head.lua
-- include: time.lua
-- use: places
local DAY_MS = 86400000
local ask = cjson.decode(ARGV[3])
local lapses, today = now + ask.lapse_ms, math.floor(now / DAY_MS)

local function answer(held)
  if held.place then
    return { 'reserved', held.arrival, held.place, held.passed, held.position, held.day or false }
  end
  return { 'deferred', held.day }
end

local function free_day()
  for day = math.max(today, ask.first_day), today + ask.horizon_days do
    if redis.call('SCARD', key('quota', ask.user, day)) < ask.per_day then
      return day
    end
  end
  return nil
end

local function live_slots()
  local slots = 0
  for _, pool in ipairs(redis.call('HKEYS', key('slots'))) do
    slots = slots + limits.slots_of(pool)
  end
  return slots
end

local function hold_day(day)
  if day then
    redis.call('SADD', key('quota', ask.user, day), ask.id)
  end
end

local function entry(day)
  return { user = ask.user, project = ask.project, workflow = ask.workflow, pool = ask.pool, class = ask.class,
    priority = ask.priority, boost = ask.boost, day = day }
end

local job = redis.call('HMGET', key('job', ask.id), 'status', 'seq', 'reservation')
if job[1] then
  return { 'known', job[1], tonumber(job[2]) }
elseif job[3] then
  redis.call('ZADD', key('lapses'), lapses, ask.id)
  return answer(cjson.decode(job[3]))
end

local day = ask.takes_day and free_day() or nil
if ask.takes_day and not day then
  return { 'horizon_full', today + ask.horizon_days }
elseif not day and ask.later then
  return { 'deferred', math.max(today, ask.first_day) }
elseif day and (ask.later or day > today) then
  hold_day(day)
  reservations.keep(ask.id, entry(day), lapses)
  return { 'deferred', day }
end

local queued, held = redis.call('ZCARD', key('queue')), redis.call('ZCARD', key('members', 'user:' .. ask.user))
if redis.call('EXISTS', key('room')) == 1 or queued >= ask.cap then
  return { 'busy', queued, live_slots() }
elseif held >= ask.user_share then
  return { 'share_full', held }
end
hold_day(day)
return answer(places.hold(ask.id, entry(day), ask.passed_bound, lapses))
