-- Takes key, fingerprint, result and steps away from a finished entry, if nothing has moved since it was read.
-- KEYS  1 entry
-- ARGV  1 attempt  2 fence  3 state as it was read
-- Answers 1; 0 when something has moved.
local entry = KEYS[1]
local state = held(entry, ARGV[1], ARGV[2])
if state ~= ARGV[3] or not (state == COMPLETED or state == FAILED) then
  return 0
end
local all = steps(entry)
for i = 1, #all, 2 do
  redis.call('HDEL', entry, all[i])
end
redis.call('HDEL', entry, 'result', 'kept')
redis.call('HSET', entry, 'key', '', 'args', '')
return 1
