-- Slots that a job takes before it is dispatched, in groups that leases want too: under the name by which it will hold them.
-- A claim is kept as JSON in the job: holder, groups. The job's next row makes it last, or takes it back.
-- use: leases

-- GIVES the groups in which a slot came free.
local function take_back(id, text, stays)
  local claim, freed = cjson.decode(text), {}
  for _, group in ipairs(claim.groups) do
    if not stays[group] then
      redis.call('ZREM', key('held', group), claim.holder)
      freed[#freed + 1] = group
    end
  end
  redis.call('ZREM', key('claims'), id)
  redis.call('HDEL', key('job', id), 'claim')
  return freed
end

-- The job's next row: it holds what it has claimed, or does not want it any more. GIVES the groups in which a slot came free.
function claims.settle(id, text, row)
  local stays = {}
  if cjson.decode(text).holder == row.holder then
    for _, group in ipairs(row.groups) do
      stays[group] = true
    end
  end
  return take_back(id, text, stays)
end

function claims.drop(holder)
  local id = leases.job_of(holder)
  local text = redis.call('HGET', key('job', id), 'claim')
  if text and cjson.decode(text).holder == holder then
    leases.wake(take_back(id, text, {}))
  end
end

-- Those that came to nothing: all that was in the log is folded by now.
function claims.lapse()
  local freed = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key('claims'), '-inf', now)) do
    for _, group in ipairs(take_back(id, redis.call('HGET', key('job', id), 'claim'), {})) do
      freed[#freed + 1] = group
    end
  end
  leases.wake(freed)
end

function claims.hold(wanted, lapses)
  local id = leases.job_of(wanted.holder)
  local text = redis.call('HGET', key('job', id), 'claim')
  local groups = text and cjson.decode(text).groups or wanted.groups
  for _, group in ipairs(groups) do
    redis.call('ZADD', key('held', group), '+inf', wanted.holder)
  end
  if not text then
    redis.call('HSET', key('job', id), 'claim', cjson.encode({ holder = wanted.holder, groups = groups }))
  end
  redis.call('ZADD', key('claims'), lapses, id)
end

-- The group that has no slot for it, or the gate that is shut. What it holds already it keeps.
function claims.blocker_of(wanted)
  if redis.call('HEXISTS', key('job', leases.job_of(wanted.holder)), 'claim') == 0 then
    local full = limits.first_full(wanted.groups)
    if full then
      return full
    end
  end
  for _, gate in ipairs(wanted.gates) do
    if shutting.ends_of(gate) then
      return gate
    end
  end
  return nil
end

-- How many slots of a group are held by those of whom the log does not tell. `held`: holders of the claims at hand.
function claims.others_in(group, held)
  local others = 0
  for _, name in ipairs(redis.call('ZRANGE', key('held', group), 0, -1)) do
    if not held[name] and not leases.is_running(name) then
      others = others + 1
    end
  end
  return others
end
