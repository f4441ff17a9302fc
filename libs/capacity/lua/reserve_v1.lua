-- Holds a place in the queue and a place of a day for a job that is about to be appended, all or none.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 JSON: id, user, project, workflow, pool, class, priority, boost, takes_day,
--            run_at (ms, or none), first_day (days since 1970), per_day, horizon_days, cap, user_share, passed_bound, lapse_ms,
--            cost_ms, inputs (job → bytes), digest of them, room (share, crowded_at, bucket; or none), dry (or none)
--   GIVES    known, status, seq · other · bytes_full, held, most, when the first goes (ms, or none)
--            · reserved, arrival, place, passed, position, day
--            · deferred, day · too_fast, for how long (ms) · horizon_full, last day · busy, queued, slots · share_full, held
--   KEEPS    asked twice it is the same reservation; nothing is held or counted where the answer is a refusal, or dry
-- include: head.lua
-- include: time.lua
-- use: places
-- use: days
-- use: limits
-- use: inputs
local MINUTE_MS = 60000 -- how much of their time a user may spend ahead: a minute's reservations at once
local ask = cjson.decode(ARGV[3])
local lapses, today = now + ask.lapse_ms, days.today()
local last_day = today + ask.horizon_days
local later = ask.run_at and ask.run_at > now

local function answer(held)
  if held.place then
    return { 'reserved', held.arrival, held.place, held.passed, held.position, held.day or false }
  end
  return { 'deferred', held.day }
end

-- Up to when the user's time is spent, this reservation too.
local function spent_with_this()
  if ask.cost_ms == 0 then
    return now
  end
  local spent = tonumber(redis.call('ZSCORE', key('spent'), ask.user) or now)
  return math.max(now, spent) + ask.cost_ms
end

local function live_slots()
  local slots = 0
  for _, pool in ipairs(redis.call('HKEYS', key('slots'))) do
    slots = slots + limits.slots_of(pool)
  end
  return slots
end

local function count(day)
  inputs.hold(ask, lapses)
  if day then
    redis.call('SADD', key('quota', ask.user, day), ask.id)
  end
  if ask.cost_ms > 0 then
    redis.call('ZADD', key('spent'), spent_with_this(), ask.user)
  end
end

local function entry(day)
  return { user = ask.user, project = ask.project, workflow = ask.workflow, pool = ask.pool, class = ask.class,
    priority = ask.priority, boost = ask.boost, day = day }
end

local job = redis.call('HMGET', key('job', ask.id), 'status', 'seq', 'reservation')
if job[1] then
  return { 'known', job[1], tonumber(job[2]) }
end
local held_for = inputs.of(ask.id)
if held_for and held_for.digest and held_for.digest ~= ask.digest then
  return { 'other' }
elseif job[3] then
  if not ask.dry then
    redis.call('ZADD', key('lapses'), lapses, ask.id)
    inputs.hold(ask, lapses)
  end
  return answer(cjson.decode(job[3]))
end

local early_ms = spent_with_this() - now - MINUTE_MS
if early_ms > 0 then
  return { 'too_fast', early_ms }
end
local bytes_full = ask.room and inputs.refusal(ask)
if bytes_full then
  return bytes_full
end

local first_day = math.max(today, ask.first_day)
local day = ask.takes_day and days.first_free(ask.user, first_day, last_day, ask.per_day) or nil
if ask.takes_day and not day then
  return { 'horizon_full', last_day }
elseif not day and later then
  return { 'deferred', first_day }
elseif day and (later or day > today) then
  if not ask.dry then
    count(day)
    reservations.keep(ask.id, entry(day), lapses)
  end
  return { 'deferred', day }
end

local queued, held = redis.call('ZCARD', key('queue')), redis.call('ZCARD', key('members', 'user:' .. ask.user))
if redis.call('EXISTS', key('room')) == 1 or queued >= ask.cap then
  return { 'busy', queued, live_slots() }
elseif held >= ask.user_share then
  return { 'share_full', held }
end
local landed = places.land(ask.id, entry(day), ask.passed_bound)
if not ask.dry then
  count(day)
  places.hold(ask.id, landed, lapses)
end
return answer(landed)
