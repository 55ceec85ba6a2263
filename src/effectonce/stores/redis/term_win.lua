-- Grants a term, unless somebody leads.
-- KEYS  1 seat
-- ARGV  1 name  2 holder  3 who  4 length (us)
-- Answers the fence, or false while another leads.
local held = redis.call('HMGET', KEYS[1], 'fence', 'holder', 'ends')
if held[1] and tonumber(held[3]) > now then
  return held[2] == ARGV[2] and held[1]
end
local fence = whole(math.max((held[1] or 0) + 1, now))
redis.call('HSET', KEYS[1], 'fence', fence, 'name', ARGV[1], 'holder', ARGV[2], 'who', ARGV[3], 'since', whole(now),
  'ends', whole(now + ARGV[4]))
return fence
