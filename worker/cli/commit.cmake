# Writes the commit that is built from as a header, where it has changed: cmake -D SOURCE=... -D GIVEN=... -D HEADER=... -P
# What was given wins, so that a tarball can say where it comes from; without that and without git it is "unknown".
set(commit "${GIVEN}")
find_program(GIT git)
if(commit STREQUAL "" AND GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${GIT} -C ${SOURCE} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT commit STREQUAL "" AND NOT changes STREQUAL "")
    string(APPEND commit "+changes")
  endif()
endif()
if(commit STREQUAL "")
  set(commit unknown)
endif()
set(text "#define GPU_WORKER_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS ${HEADER})
  file(READ ${HEADER} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${HEADER} "${text}")
endif()
