-- What the end of a quarantine or of a pause sets off: the waiters for it are looked at.
-- use: leases

function reopening.if_over()
  if not quarantine.end_if_over() then
    return
  end
  local awaited = {}
  for _, group in ipairs(redis.call('ZRANGE', key('awaited'), 0, -1)) do
    if quarantine.concerns(group) then
      awaited[#awaited + 1] = group
    end
  end
  leases.wake(awaited)
end

-- Groups that were shut until now or before.
function reopening.of_shut()
  leases.wake(shutting.open())
end
