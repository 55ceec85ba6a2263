-- Notes that ticks were sent.
-- KEYS  1 last: entry -> row  2 unmarked: entry:instant -> row
-- ARGV  of each tick: entry, instant
for i = 1, #ARGV, 2 do
  redis.call('HDEL', KEYS[2], ARGV[i] .. ':' .. ARGV[i + 1])
  local row = redis.call('HGET', KEYS[1], ARGV[i])
  local instant, state, rest = string.match(row or '', '^(%-?%d+)|(%d)|(.*)$')
  if instant == ARGV[i + 1] and state == '2' then
    redis.call('HSET', KEYS[1], ARGV[i], instant .. '|3|' .. rest)
  end
end
