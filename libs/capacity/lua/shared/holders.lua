-- Who holds a slot of a group.
-- use: leases

function holders.of(group)
  local names = redis.call('ZRANGEBYSCORE', key('held', group), '(' .. now, '+inf')
  table.sort(names)
  return names
end

-- GIVES name, owner (a running holder is its own), user, worker, since, end; null where there is none.
function holders.describe(name)
  local lease = redis.call('HMGET', key('lease', name), 'owner', 'since', 'user')
  local ends = redis.call('ZSCORE', lease[1] and key('ends') or key('leases'), name)
  ends = tonumber(ends or redis.call('ZSCORE', key('claims'), leases.job_of(name)) or 0)
  if lease[1] == '' then
    return { name, false, lease[3] ~= '' and lease[3], false, tonumber(lease[2]), ends }
  end
  local owner = lease[1] or name
  local job = redis.call('HMGET', key('job', leases.job_of(owner)), 'worker', 'shape')
  local row = cjson.decode(job[2])
  local since = lease[2] and tonumber(lease[2]) or row.started_ms
  return { name, owner, row.user, job[1] ~= '' and job[1], since or false, ends }
end

-- Since when the group is full: since the job that started last, of those that run in it.
function holders.full_since(group)
  local since = nil
  for _, holder in ipairs(redis.call('ZRANGEBYSCORE', key('held', group), '+inf', '+inf')) do
    local row = cjson.decode(redis.call('HGET', key('job', leases.job_of(holder)), 'shape'))
    since = row.started_ms and math.max(since or 0, row.started_ms) or since
  end
  return since or false
end

function holders.describe_all(group)
  local described = {}
  for at, holder in ipairs(holders.of(group)) do
    described[at] = holders.describe(holder)
  end
  return described
end
