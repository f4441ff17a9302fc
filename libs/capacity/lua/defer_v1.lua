-- Holds a place of another day for a queued job that slipped past the daily cap, under its id like a reservation.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 job's id, 4 user, 5 first day (since 1970), 6 places a day, 7 how many days ahead at
--            most, 8 lapse (ms)
--   GIVES    deferred, day · horizon_full, last day · not_queued, id
--   KEEPS    asked twice it is the same day; the day that the job has is none of them
-- include: head.lua
-- include: time.lua
-- use: reservations
-- use: days
local id, user, per_day, lapses = ARGV[3], ARGV[4], tonumber(ARGV[6]), now + ARGV[8]
local first_day, last_day = math.max(days.today(), tonumber(ARGV[5])), days.today() + ARGV[7]

local job = redis.call('HMGET', key('job', id), 'shape', 'reservation')
local row = job[1] and cjson.decode(job[1])
if not row or not row.place then
  return { 'not_queued', id }
elseif job[2] then
  redis.call('ZADD', key('lapses'), lapses, id)
  return { 'deferred', cjson.decode(job[2]).day }
end
local day = days.first_free(user, first_day, last_day, per_day, row.quota_day)
if not day then
  return { 'horizon_full', last_day }
end
redis.call('SADD', key('quota', user, day), id)
reservations.keep(id, { user = user, day = day, boost = row.boost }, lapses)
return { 'deferred', day }
