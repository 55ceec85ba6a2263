-- Lets an entry run again that is held or finished, if nothing has moved since it was read.
-- KEYS  1 entry
-- ARGV  1 attempt  2 fence  3 state as it was read  4 attempt of the person  5 keep (ms, '' for ever)
-- Answers 1; 0 when something has moved.
local entry = KEYS[1]
local state = held(entry, ARGV[1], ARGV[2])
if state ~= ARGV[3] or state == CLAIMED or state == RELEASED then
  return 0
end
local all = steps(entry)
for i = 1, #all, 2 do
  if state == COMPLETED or state == FAILED or step(all[i + 1]).ended == '0' then
    redis.call('HDEL', entry, all[i])
  end
end
redis.call('HDEL', entry, 'deaths', 'retries', 'continued', 'handed', 'kept', 'result', 'holds')
redis.call('HSET', entry, 'state', RELEASED, 'since', whole(now), 'attempt', ARGV[4],
  'fence', whole(math.max(ARGV[2] + 1, now)))
forget(entry, ARGV[5])
return 1
