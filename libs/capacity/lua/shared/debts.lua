-- What parked jobs are owed. The rule: of every bucket with parked jobs, at least as many eligible jobs of its pool and class
-- go before its first as its group has free slots. Where that may have broken the bucket is owed a look, and plan pays.
-- A bucket is <group>@<pool>/<class>, of a project project:<id>/<tier>@<pool>/<class>, as tiers have different limits there.
-- use: limits

function debts.bucket_of(group, row)
  local tier = string.find(group, '^project:') and '/' .. row.tier or ''
  return group .. tier .. '@' .. row.pool .. '/' .. row.class
end

-- The group of a bucket, and the tier by which its jobs are measured.
function debts.measure_of(bucket)
  local group = string.match(bucket, '^(.*)@')
  if string.find(group, '^project:') then
    return string.match(group, '^(.*)/(.*)$')
  end
  return group, nil
end

function debts.forgive(bucket)
  redis.call('HDEL', key('debts'), bucket)
  redis.call('ZREM', key('debtors'), bucket)
end

-- Never more looks than it has jobs.
function debts.owe(bucket, looks)
  local parked = redis.call('ZCARD', key('parked', bucket))
  local owed = tonumber(redis.call('HGET', key('debts'), bucket) or 0)
  redis.call('HSET', key('debts'), bucket, math.min(parked, owed + looks))
  redis.call('ZADD', key('debtors'), 0, bucket)
end

function debts.owe_all(bucket)
  debts.owe(bucket, redis.call('ZCARD', key('parked', bucket)))
end

-- The buckets of a group stand together in the order of names: behind `<group>@`, of a project behind `<group>/`.
function debts.buckets_of(group)
  local from, to = group .. '@', group .. 'A'
  if string.find(group, '^project:') then
    from, to = group .. '/', group .. '0'
  end
  return redis.call('ZRANGEBYLEX', key('buckets'), '[' .. from, '(' .. to)
end

-- One look to every bucket of each of the groups, but to `spared`.
function debts.owe_groups(groups, spared)
  for _, group in ipairs(groups) do
    for _, bucket in ipairs(debts.buckets_of(group)) do
      if bucket ~= spared then
        debts.owe(bucket, 1)
      end
    end
  end
end

-- Lets `change` change limits; a bucket whose limit was raised by it is owed as many looks.
function debts.change_limits(buckets, change)
  local before = {}
  for at, bucket in ipairs(buckets) do
    before[at] = limits.of(debts.measure_of(bucket))
  end
  change()
  limits.forget()
  for at, bucket in ipairs(buckets) do
    local raised = limits.of(debts.measure_of(bucket)) - before[at]
    if raised > 0 then
      debts.owe(bucket, raised)
    end
  end
end
