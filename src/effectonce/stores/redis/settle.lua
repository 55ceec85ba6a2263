-- Ends a held entry as a person says, if nothing has moved since it was read.
-- KEYS  1 entry
-- ARGV  1 attempt  2 fence  3 state as it was read  4 attempt of the person  5 state  6 keep (ms, '' for ever)
--       7 kept (1 or 0)  8 result (absent: None)
-- Answers 1; 0 when something has moved.
local entry = KEYS[1]
local state = held(entry, ARGV[1], ARGV[2])
if state ~= ARGV[3] or not (state == UNKNOWN or state == POISONED) then
  return 0
end
redis.call('HDEL', entry, 'continued', 'handed', 'kept', 'result', 'holds', 'ends', 'lease', 'keep')
redis.call('HSET', entry, 'state', ARGV[5], 'since', whole(now), 'attempt', ARGV[4],
  'fence', whole(math.max(ARGV[2] + 1, now)))
if ARGV[7] == '1' then
  redis.call('HSET', entry, 'kept', 1)
end
if ARGV[8] then
  redis.call('HSET', entry, 'result', ARGV[8])
end
forget(entry, ARGV[6])
return 1
