-- Where a queued job stands: in `queue` always, in its pool's `line` unless paused, and there eligible or parked.
-- `spot` of a job says which: eligible, parked:<bucket>, aside (paused) or held (it runs). Reserved ones have none.
-- An entry is a row or a reservation: user, project, workflow, pool, class, priority, place.
-- use: debts

local CLASS_STEP = 2 ^ 46

function queue.score_of(entry)
  return entry.class * CLASS_STEP + entry.place
end

-- The scores of a class: from, and the first that is none of them.
function queue.scores_of(class)
  return class * CLASS_STEP, (class + 1) * CLASS_STEP
end

-- Whose it is: the scopes whose members are kept.
function queue.owners_of(entry)
  return { 'user:' .. entry.user, 'project:' .. entry.project, entry.workflow and 'workflow:' .. entry.workflow }
end

-- The pauses that hold an entry, the widest scope first, each with its JSON; or those alone that take it aside: `all` and pools are
-- flags that plan reads, and move nobody.
function queue.pauses_of(entry, taking_aside)
  if redis.call('HLEN', key('paused')) == 0 then
    return {}
  end
  local class, owners = 'priority:' .. entry.priority, queue.owners_of(entry)
  local scopes = taking_aside and { class, unpack(owners) } or { 'all', class, 'pool:' .. entry.pool, unpack(owners) }
  local pauses = {}
  for at, pause in ipairs(redis.call('HMGET', key('paused'), unpack(scopes))) do
    if pause then
      pauses[#pauses + 1] = { scopes[at], pause }
    end
  end
  return pauses
end

function queue.is_aside(entry)
  return #queue.pauses_of(entry, true) > 0
end

function queue.set_spot(id, spot)
  redis.call('HSET', key('job', id), 'spot', spot)
end

-- These three give the spot it stands in; writing it is for the caller.
function queue.park(id, row, group)
  local bucket = debts.bucket_of(group, row)
  redis.call('ZADD', key('parked', bucket), queue.score_of(row), id)
  redis.call('ZADD', key('buckets'), 0, bucket)
  return 'parked:' .. bucket
end

function queue.make_eligible(id, row)
  redis.call('ZADD', key('eligible', row.pool), queue.score_of(row), id)
  return 'eligible'
end

-- All that may keep it from running: the groups it needs a slot of, and its gates.
function queue.blockers_of(row)
  local names = { unpack(row.groups) }
  for _, gate in ipairs(row.gates or {}) do
    names[#names + 1] = shutting.gate(gate)
  end
  return names
end

function queue.enter(id, row)
  local full = limits.first_full(row.gates and queue.blockers_of(row) or row.groups, row.tier)
  return full and queue.park(id, row, full) or queue.make_eligible(id, row)
end

function queue.unpark(id, bucket)
  redis.call('ZREM', key('parked', bucket), id)
  if redis.call('EXISTS', key('parked', bucket)) == 0 then
    redis.call('ZREM', key('buckets'), bucket)
    debts.forgive(bucket)
  end
end

-- Out of eligible or parked. One that was eligible stood for a slot that another may have, unless it takes it.
function queue.leave(id, row, spot, takes_slots)
  if spot == 'eligible' then
    redis.call('ZREM', key('eligible', row.pool), id)
    if not takes_slots then
      debts.owe_groups(row.groups)
    end
  elseif string.find(spot, '^parked:') then
    queue.unpark(id, string.sub(spot, 8))
  end
end

function queue.join_line(id, entry)
  redis.call('ZADD', key('line', entry.pool), queue.score_of(entry), id)
end

-- In the order and in the counts; whether it stands in line is for the caller to say.
function queue.join(id, entry)
  local score = queue.score_of(entry)
  redis.call('ZADD', key('queue'), score, id)
  for _, owner in ipairs(queue.owners_of(entry)) do
    redis.call('ZADD', key('members', owner), score, id)
  end
end

function queue.quit(id, entry)
  redis.call('ZREM', key('queue'), id)
  redis.call('ZREM', key('line', entry.pool), id)
  for _, owner in ipairs(queue.owners_of(entry)) do
    redis.call('ZREM', key('members', owner), id)
  end
end

-- One that does not stand in line, as it is paused or not held yet, has the position that it would have.
function queue.position_of(id, entry)
  local rank = redis.call('ZRANK', key('line', entry.pool), id)
  if rank then
    return rank + 1
  end
  local score = string.format('%.0f', queue.score_of(entry))
  local position = 1 + redis.call('ZCOUNT', key('line', entry.pool), '-inf', '(' .. score)
  for _, same in ipairs(redis.call('ZRANGEBYSCORE', key('line', entry.pool), score, score)) do
    position = position + (same < id and 1 or 0)
  end
  return position
end
