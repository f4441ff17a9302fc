-- key('line', pool): the name of a key. Which there are is declared in keys.py, and checked when a script is loaded.
-- One function for all, as making one for each of them would cost more than most calls.
local space -- the keys of this generation; set as soon as it is known
local function key(name, one, two)
  return space .. (two and name .. ':' .. one .. ':' .. two or one and name .. ':' .. one or name)
end
