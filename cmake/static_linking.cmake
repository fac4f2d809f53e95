# For OPTFARM_STATIC: Debian's CMake packages name shared libraries; their static
# twins lie beside them. What gRPC's need in turn is not said anywhere complete,
# so it is given as one group that the linker goes through until nothing is
# missing.

function(optfarm_use_static target)
  if(NOT TARGET ${target})
    return()
  endif()
  foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_NONE
          IMPORTED_LOCATION_RELEASE IMPORTED_LOCATION_RELWITHDEBINFO)
    get_target_property(path ${target} ${property})
    if(path MATCHES "\\.so[.0-9]*$")
      string(REGEX REPLACE "\\.so[.0-9]*$" ".a" path ${path})
      if(EXISTS ${path})
        set_target_properties(${target} PROPERTIES ${property} ${path})
      endif()
    endif()
  endforeach()
endfunction()

get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target ${imported})
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "EXECUTABLE" AND NOT type STREQUAL "INTERFACE_LIBRARY")
    optfarm_use_static(${target})
  endif()
endforeach()

set(static_folder ${OPTFARM_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
file(GLOB abseil ${static_folder}/libabsl_*.a)
set(together ${abseil})
foreach(name grpc++ grpc gpr upb address_sorting cares re2 ssl crypto protobuf
        spdlog fmt archive nettle acl lzma zstd lz4 bz2 xml2 icuuc icudata
        icui18n snappy jpeg png16 z dl)
  if(EXISTS ${static_folder}/lib${name}.a)
    list(APPEND together ${static_folder}/lib${name}.a)
  endif()
endforeach()
# CMake puts what is linked to all last.
link_libraries(-Wl,--start-group ${together} -Wl,--end-group)
