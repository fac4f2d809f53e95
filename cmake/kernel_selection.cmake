# optfarm_select_kernels(TARGET FILE)
#
# Builds runtime library TARGET with only the kernels and dtypes that FILE
# names, as `optctl graph required-ops --list` writes it: an op a line
# with the dtypes it works on, lines that begin with # are comments. No FILE: all
# of them. engine/runtime/core/kernel_selection.h reads what is defined here.

function(optfarm_select_kernels target file)
  if(NOT file)
    return()
  endif()
  get_filename_component(file "${file}" ABSOLUTE)
  if(NOT EXISTS "${file}")
    message(FATAL_ERROR "OPTFARM_KERNELS_FILE: there is no file ${file}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(STRINGS "${file}" lines)
  set(ops)
  set(types)
  foreach(line ${lines})
    if(line MATCHES "^[ \t]*(#.*)?$")
      continue()
    endif()
    string(REGEX MATCHALL "[^ \t]+" words "${line}")
    list(POP_FRONT words op)
    if(NOT op MATCHES "^[A-Za-z_][A-Za-z0-9_>]*$")
      message(FATAL_ERROR "${file}: '${op}' is not the name of an op")
    endif()
    foreach(type ${words})
      if(NOT type MATCHES "^[a-z]+[0-9]*$")
        message(FATAL_ERROR "${file}: '${type}' of ${op} is not a dtype")
      endif()
    endforeach()
    list(APPEND ops ${op})
    list(APPEND types ${words})
  endforeach()
  if(NOT ops)
    message(FATAL_ERROR "${file} names no op; write it with "
                        "optctl graph required-ops --list")
  endif()
  list(SORT ops)
  list(REMOVE_DUPLICATES ops)
  list(SORT types)
  list(REMOVE_DUPLICATES types)
  list(LENGTH ops count)
  list(JOIN ops " " ops)
  list(JOIN types " " types)
  message(STATUS "Runtime with ${count} kernels for ${types}: ${ops}")
  target_compile_definitions(${target} PUBLIC "OPTFARM_KERNEL_OPS=\"${ops}\""
                             "OPTFARM_KERNEL_TYPES=\"${types}\"")
  # Who chooses kernels wants a small program: the linker may drop functions.
  target_compile_options(optfarm_build INTERFACE -ffunction-sections
                         -fdata-sections)
endfunction()
