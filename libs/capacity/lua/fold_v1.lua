-- Folds one record of the log.
--   KEYS[1]  the shard's view
--   ARGV     1 epoch, 2 now (ms or empty), 3 lease of a running job (ms), 4 the record's seq, 5 the one it follows,
--            6 order (JSON, or empty: none), 7 job's id (empty: no row), then the row: 8 shape (JSON), 9 status, 10 seq,
--            11 cancelling ('1' or empty), 12 worker, 13 the job (JSON), 14 whom it passed (JSON list, or empty: nobody),
--            15 of a first row: how often it was passed before, 16 groups whose limit nobody brings any more (JSON list;
--            empty or left out: none), 17 jobs that have ended and go (JSON list; empty or left out: none)
--   GIVES    how far the view is folded now, the grants
--   KEEPS    nothing happens unless the view stands at 5, so a record is folded once and in the log's order, by whichever replica
-- include: head.lua
local follows, id, was, unused, gone = mark[4] == ARGV[5], ARGV[7], {}, ARGV[16] or '', ARGV[17] or ''
if follows and id ~= '' then
  was = redis.call('HMGET', key('job', id), 'shape', 'spot', 'status', 'passed', 'reservation', 'claim')
end

-- Most records bring a running job a step on, and touch no index: they are done before anything else is made.
local moves_on = was[2] == 'held' and was[1] == ARGV[8] and ARGV[14] == ''
local touches_none = gone == '' and unused == '' and ARGV[6] == '' and (id == '' or moves_on)
if not mark[5] and not mark[6] and (not follows or touches_none) then
  if not follows then
    return { tonumber(mark[4]), {} }
  elseif moves_on then
    redis.call('HSET', key('job', id), 'status', ARGV[9], 'seq', ARGV[10], 'cancelling', ARGV[11], 'worker', ARGV[12],
      'doc', ARGV[13])
  end
  redis.call('HSET', KEYS[1], 'applied', ARGV[4])
  return { tonumber(ARGV[4]), {} }
end

-- include: time.lua
-- use: orders
-- use: reservations
-- use: claims
-- use: reopening
-- use: ended

local ENDS = { ready = true, failed = true, cancelled = true }

-- A job's first event: its user's tier and the limits it brings. GIVES the groups whose limit it may have changed.
local function begin_job(row)
  local user = 'user:' .. row.user
  local changed = { user }
  for group in pairs(row.limits or {}) do
    local named = redis.call('HEXISTS', key('limits'), group) == 1
    for _, limit in ipairs(redis.call('HMGET', key('defaults'), unpack(limits.names_in_policy(group)))) do
      named = named or limit
    end
    if not named then
      changed[#changed + 1] = group
    end
  end
  redis.call('HSET', key('tiers'), row.user, row.tier)
  for at = 2, #changed do
    redis.call('HSET', key('limits'), changed[at], row.limits[changed[at]])
  end
  limits.forget()
  limits.learn_tier(row.user, row.tier)
  return changed
end

local function fold_row()
  local row = cjson.decode(ARGV[8])
  local changed, passed = {}, was[4] or 0
  if not was[1] then
    changed, passed = begin_job(row), ARGV[15]
  end
  if was[5] then
    reservations.drop(id, was[5])
  end
  local unclaimed = was[6] and claims.settle(id, was[6], row) or {}
  local freed = rows.replace({ shape = was[1], status = was[3] }, row, {
    shape = ARGV[8], status = ARGV[9], seq = ARGV[10], cancelling = ARGV[11], worker = ARGV[12], doc = ARGV[13],
    passed = ENDS[ARGV[9]] and 0 or passed,
  }, tonumber(ARGV[3]))
  if ARGV[14] ~= '' then
    passing.count(cjson.decode(ARGV[14]))
  end
  for _, group in ipairs(unclaimed) do
    freed[#freed + 1] = group
  end
  if #freed > 0 then
    leases.wake(freed)
  end
  if #changed > 0 and redis.call('EXISTS', key('awaited')) == 1 then
    leases.wake(changed)
  end
end

if follows then
  for _, job in ipairs(gone ~= '' and cjson.decode(gone) or {}) do
    ended.forget(job)
  end
  if id ~= '' then
    fold_row()
  end
  for _, group in ipairs(unused ~= '' and cjson.decode(unused) or {}) do
    orders.unset_limit({ group = group })
  end
  if ARGV[6] ~= '' then
    local order = cjson.decode(ARGV[6])
    orders[order.act](order)
  end
  if mark[5] then
    reopening.if_over()
  end
  redis.call('HSET', KEYS[1], 'applied', ARGV[4])
end
return { follows and tonumber(ARGV[4]) or tonumber(mark[4]), grants.told() }
