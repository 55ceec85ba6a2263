-- Reserves a name, if nobody has it.
-- KEYS  1 reservation
-- ARGV  1 holder  2 how long (ms)
-- Answers its holder: this one, or the one that has it already.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return ARGV[1]
end
return redis.call('GET', KEYS[1])
