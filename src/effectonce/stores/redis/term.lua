-- What the scripts of terms and ticks begin with: the server's clock, and whether a term stands.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function whole(number)
  return string.format('%.0f', number)
end

local function stands(seat, fence, holder)
  local held = redis.call('HMGET', seat, 'fence', 'holder', 'ends')
  return held[1] == fence and held[2] == holder and tonumber(held[3]) > now
end
