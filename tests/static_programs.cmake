# cmake -DPROGRAM=FILE "-DLEFT=REGEX" -P static_programs.cmake
#
# Fails when PROGRAM loads a library that should be in it
# (docs/adr/2026-11-21-static-dependencies.md) or does not start.

execute_process(COMMAND ${PROGRAM} --help RESULT_VARIABLE result OUTPUT_QUIET)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --help ended with ${result}")
endif()
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${PROGRAM}
     RESOLVED_DEPENDENCIES_VAR loaded UNRESOLVED_DEPENDENCIES_VAR missing)
foreach(library ${loaded} ${missing})
  get_filename_component(name ${library} NAME)
  if(NOT name MATCHES "${LEFT}")
    message(SEND_ERROR "${PROGRAM} loads ${name}")
  endif()
endforeach()
