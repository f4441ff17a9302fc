-- What time alone has ended: waiting, leases, what was shut. Running jobs' own leases end in the log only.
-- use: reopening

function catch_up.all()
  for _, waiter in ipairs(redis.call('ZRANGEBYSCORE', key('deadlines'), '-inf', now)) do
    leases.stop_waiting(waiter)
  end
  local ended = redis.call('ZRANGEBYSCORE', key('ends'), '-inf', now)
  for _, lease in ipairs(ended) do
    leases.let_go(lease)
  end
  if mark[5] then
    reopening.if_over()
  end
  if mark[8] then
    reopening.of_shut()
  end
  if #ended > 0 then
    leases.wake(redis.call('ZRANGE', key('awaited'), 0, -1))
  else -- no slot came free, so who waits, waits for a reason; a pool alone may have grown unheard
    leases.wake(redis.call('ZRANGEBYLEX', key('awaited'), '[pool:', '(pool;'))
  end
end
