-- What the end of a quarantine sets off: whatever it blocked is looked at again.
-- use: leases

function reopening.if_over()
  if not quarantine.end_if_over() then
    return
  end
  for _, bucket in ipairs(redis.call('ZRANGE', key('buckets'), 0, -1)) do
    if quarantine.concerns((debts.measure_of(bucket))) then
      debts.owe_all(bucket)
    end
  end
  local awaited = {}
  for _, group in ipairs(redis.call('ZRANGE', key('awaited'), 0, -1)) do
    if quarantine.concerns(group) then
      awaited[#awaited + 1] = group
    end
  end
  leases.wake(awaited)
end
