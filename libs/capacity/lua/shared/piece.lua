-- A table of functions that are made when the first of them is asked for.
local unmade = { __index = function(self, name)
  local make = rawget(self, 1)
  self[1] = nil
  setmetatable(self, nil)
  make(self)
  return self[name]
end }
local function piece(make)
  return setmetatable({ make }, unmade)
end
