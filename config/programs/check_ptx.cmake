# The driver gets the PTX unchanged. A function that is only declared in it would fail to load on the GPU.
file(STRINGS ${PTX} externs REGEX "^[ \t]*\\.extern[ \t]+\\.func")
list(FILTER externs EXCLUDE REGEX "__assertfail") # the driver has it: what assert() calls
if(externs)
  file(REMOVE ${PTX})
  list(JOIN externs "\n  " externs)
  message(FATAL_ERROR "The kernel calls functions that exist on no GPU (kernel.h has its own exp_f32, log_f32 ...):\n  ${externs}")
endif()
