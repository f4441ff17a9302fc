-- After a rebuild nobody knows what was taken inside the running jobs: such groups stay shut until each job has reported.
local ends = tonumber(mark[5] or '')

function quarantine.is_on()
  return ends ~= nil and now < ends and redis.call('EXISTS', key('unheard')) == 1
end

-- The log knows who holds the groups of whole jobs.
function quarantine.concerns(group)
  return group ~= 'workflows' and not string.find(group, '^user:') and not string.find(group, '^project:')
    and not string.find(group, '^pool:')
end

function quarantine.shuts(group)
  return ends ~= nil and quarantine.concerns(group) and quarantine.is_on()
end

function quarantine.ends_at()
  return ends
end

-- The first caller that finds it over ends it. GIVES whether that was the caller.
function quarantine.end_if_over()
  if ends == nil or quarantine.is_on() then
    return false
  end
  ends = nil
  redis.call('HDEL', KEYS[1], 'quarantine_until')
  redis.call('DEL', key('unheard'))
  return true
end
