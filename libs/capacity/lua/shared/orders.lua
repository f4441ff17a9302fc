-- What operators order: pauses, limits, leases freed by force.
-- use: rows

-- The queued jobs of a scope, in order. Of a priority it is the stretch of the queue that is its class's.
local function members_of(scope, class)
  if not string.find(scope, '^priority:') then
    return redis.call('ZRANGE', key('members', scope), 0, -1)
  elseif not class then
    return {}
  end
  local from, above = queue.scores_of(class)
  return redis.call('ZRANGEBYSCORE', key('queue'), from, string.format('(%.0f', above))
end

-- GIVES what makes a job an entry of the queue.
local function entry_of(id)
  local job = redis.call('HMGET', key('job', id), 'reservation', 'shape', 'spot')
  if job[3] and job[3] ~= '' then -- a queued job, which may hold another day besides
    return cjson.decode(job[2])
  end
  return cjson.decode(job[1])
end

-- `all` and pools are looked at by the planner: their jobs stay where they are.
function orders.pause(order)
  redis.call('HSET', key('paused'), order.scope, order.text)
  for _, id in ipairs(members_of(order.scope, order.class)) do
    redis.call('ZREM', key('line', entry_of(id).pool), id)
  end
end

function orders.resume(order)
  if redis.call('HDEL', key('paused'), order.scope) == 0 then
    return
  end
  for _, id in ipairs(members_of(order.scope, order.class)) do
    local entry = entry_of(id)
    if not queue.is_aside(entry) then
      queue.join_line(id, entry)
    end
  end
end

function orders.set_limit(order)
  redis.call('HSET', key('limits'), order.group, order.limit)
  limits.forget()
  leases.wake({ order.group })
end

function orders.unset_limit(order)
  redis.call('HDEL', key('limits'), order.group)
  limits.forget()
  leases.wake({ order.group })
end

-- An operator's word: the lease is over, and its stage is not to hold it again. A job's own slot is not to be had so.
function orders.free_lease(order)
  local asked = redis.call('HGET', key('waiter', order.lease), 'groups')
  if asked and rows.contains(cjson.decode(asked), order.group) then
    leases.stop_waiting(order.lease)
  end
  local held = redis.call('HMGET', key('lease', order.lease), 'groups', 'owner')
  if not held[1] or not rows.contains(cjson.decode(held[1]), order.group) then
    return
  end
  if held[2] ~= '' then
    redis.call('SADD', key('freed', leases.job_of(held[2])), order.lease)
  end
  leases.wake(leases.let_go(order.lease))
end
