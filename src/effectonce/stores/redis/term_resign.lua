-- Ends a term now; its fence stays, for the next one has to be larger.
-- KEYS  1 seat
-- ARGV  1 fence  2 holder
if stands(KEYS[1], ARGV[1], ARGV[2]) then
  redis.call('HSET', KEYS[1], 'ends', whole(now))
end
