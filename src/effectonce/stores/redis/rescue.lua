-- Releases claims whose lease ended more than one lease ago, and counts a death for each (rule 17).
-- One that waits for a person (`domain.steps.waits_for_a_person`) becomes unknown instead.
-- KEYS  entry and claims of the first, of the second, ...
-- Answers for each the entry as it was, or nil when it was not released.
local rescued = {}
local function waits(entry)
  local all = steps(entry)
  for i = 2, #all, 2 do
    local was = step(all[i])
    if was.ended == '0' and was.flags % 2 == 1 then
      return true
    end
  end
  return #all == 0 and redis.call('HEXISTS', entry, 'holds') == 1
end
for i = 1, #KEYS / 2 do
  local entry, claims = KEYS[2 * i - 1], KEYS[2 * i]
  local old = told(entry)
  rescued[i] = false
  local lease = redis.call('HGET', entry, 'lease')
  if not old or old[1] ~= CLAIMED then
    redis.call('ZREM', claims, member(entry))
  elseif now > old[16] + lease then
    rescued[i] = old
    redis.call('ZREM', claims, member(entry))  -- first: after it, a server that is full takes the rest too
    local unknown = waits(entry)
    redis.call('HSET', entry, 'state', unknown and UNKNOWN or RELEASED, 'since', whole(now))
    redis.call('HINCRBY', entry, 'deaths', 1)
    forget(entry, unknown and '' or redis.call('HGET', entry, 'keep'))
  end
end
return rescued
