-- Where a queued job stands: in `queue` always, in its pool's `line` unless paused, and among the members of all that it names.
-- `spot` of a job says whether it is queued or held (it runs). Reserved ones have none.
-- An entry is a row or a reservation: user, project, workflow, pool, class, priority, place, of a row also groups and gates.

local CLASS_STEP = 2 ^ 46

function queue.score_of(entry)
  return entry.class * CLASS_STEP + entry.place
end

-- The scores of a class: from, and the first that is none of them.
function queue.scores_of(class)
  return class * CLASS_STEP, (class + 1) * CLASS_STEP
end

-- Whose it is: the scopes that may be paused with it.
function queue.owners_of(entry)
  return { 'user:' .. entry.user, 'project:' .. entry.project, entry.workflow and 'workflow:' .. entry.workflow }
end

-- Under which its membership is kept, each once: its scopes, and the groups and gates that readers ask about.
local function names_of(entry)
  local names, known = {}, {}
  for _, list in ipairs({ queue.owners_of(entry), entry.groups or {}, entry.gates or {} }) do
    for _, name in ipairs(list) do
      if not known[name] then
        known[name], names[#names + 1] = true, name
      end
    end
  end
  return names
end

-- The pauses that hold an entry, the widest scope first, each with its JSON; or those alone that take it aside: `all` and pools are
-- flags that the planner reads, and move no job.
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

function queue.join_line(id, entry)
  redis.call('ZADD', key('line', entry.pool), queue.score_of(entry), id)
end

-- In the order and in the counts; whether it stands in line is for the caller to say.
function queue.join(id, entry)
  local score = queue.score_of(entry)
  redis.call('ZADD', key('queue'), score, id)
  for _, name in ipairs(names_of(entry)) do
    redis.call('ZADD', key('members', name), score, id)
  end
end

function queue.quit(id, entry)
  redis.call('ZREM', key('queue'), id)
  redis.call('ZREM', key('line', entry.pool), id)
  for _, name in ipairs(names_of(entry)) do
    redis.call('ZREM', key('members', name), id)
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
