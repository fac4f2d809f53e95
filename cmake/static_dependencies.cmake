# Third parties that programs take in rather than load
# (docs/adr/2026-11-21-static-dependencies.md): optctl starts once a command,
# and 70 shared libraries cost it more time and memory than a small model's
# chain of transforms.
#
#   optfarm_link_items(OUT ITEM...)   what a room links in place of ITEMs: the
#       same, but in a target with property OPTFARM_STATIC_DEPENDENCIES the
#       static library of those that have one
#   optfarm_link_statically(PROGRAM SHARED_CXX)  sets that property and all else;
#       SHARED_CXX: a library that PROGRAM loads brings the shared C++ library
#
# The distribution's CMake packages name shared libraries only, so each library
# gets a mirror here. What has no static library stays as it is.

include(CheckCXXSourceRuns)

set(OPTFARM_MIRRORED
    "^((absl|gRPC|protobuf|re2|c-ares|JPEG|PNG|ZLIB|zstd|Snappy|LibArchive|GIF|extra_ops)::|yaml-cpp$)")
if(OPTFARM_STATIC)
  string(REPLACE "absl|" "absl|OpenSSL|" OPTFARM_MIRRORED "${OPTFARM_MIRRORED}")
endif()
# What the static libarchive needs besides; its shared one brings them along.
set(OPTFARM_ARCHIVE_NEEDS bz2 lzma zstd nettle)

# The path of library NAME's archive; empty where there is none.
function(optfarm_find_archive out name)
  find_library(OPTFARM_ARCHIVE_${name} lib${name}.a)
  mark_as_advanced(OPTFARM_ARCHIVE_${name})
  set(${out} "${OPTFARM_ARCHIVE_${name}}" PARENT_SCOPE)
  if(NOT OPTFARM_ARCHIVE_${name})
    set(${out} "" PARENT_SCOPE)
  endif()
endfunction()

# The archive that stands beside shared library ITEM; empty where there is none.
function(optfarm_archive_of out item)
  set(${out} "" PARENT_SCOPE)
  get_target_property(library ${item} LOCATION)
  string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${library}")
  if(NOT archive MATCHES "\\.a$" OR NOT EXISTS "${archive}")
    return()
  endif()
  if(item STREQUAL "LibArchive::LibArchive")
    foreach(name ${OPTFARM_ARCHIVE_NEEDS})
      optfarm_find_archive(needed ${name})
      if(NOT needed)
        return()
      endif()
    endforeach()
  endif()
  set(${out} "${archive}" PARENT_SCOPE)
endfunction()

# What MIRROR of ITEM links: the mirrors of what ITEM links.
function(optfarm_link_mirror mirror item)
  get_target_property(needs ${item} INTERFACE_LINK_LIBRARIES)
  if(item STREQUAL "re2::re2")
    # Found by pkg-config, which gives flags.
    optfarm_find_archive(re2 re2)
    list(TRANSFORM needs REPLACE "^-?l?re2$" "${re2}")
  elseif(item STREQUAL "LibArchive::LibArchive")
    set(needs ZLIB::ZLIB)
    foreach(name ${OPTFARM_ARCHIVE_NEEDS})
      optfarm_find_archive(needed ${name})
      list(APPEND needs ${needed})
    endforeach()
  endif()
  foreach(need ${needs})
    if(need)
      optfarm_mirror(linked ${need})
      target_link_libraries(${mirror} INTERFACE ${linked})
    endif()
  endforeach()
endfunction()

# The mirror of imported target ITEM with all that it needs, or ITEM itself.
function(optfarm_mirror out item)
  set(${out} ${item} PARENT_SCOPE)
  if(NOT item MATCHES "${OPTFARM_MIRRORED}" OR NOT TARGET ${item})
    return()
  endif()
  string(REPLACE "::" "_" mirror optfarm_static_${item})
  if(NOT TARGET ${mirror})
    get_target_property(type ${item} TYPE)
    if(type STREQUAL INTERFACE_LIBRARY)
      add_library(${mirror} INTERFACE IMPORTED GLOBAL)
    else()
      optfarm_archive_of(archive ${item})
      if(NOT archive)
        set_property(GLOBAL APPEND PROPERTY OPTFARM_NOT_STATIC ${item})
        return()
      endif()
      add_library(${mirror} STATIC IMPORTED GLOBAL)
      set_target_properties(${mirror} PROPERTIES IMPORTED_LOCATION ${archive}
                            IMPORTED_LINK_INTERFACE_LANGUAGES CXX)
    endif()
    optfarm_link_mirror(${mirror} ${item})
  endif()
  set(${out} ${mirror} PARENT_SCOPE)
endfunction()

function(optfarm_link_items out)
  set(items)
  foreach(item ${ARGN})
    optfarm_mirror(mirror ${item})
    if(NOT mirror STREQUAL item)
      set(item "$<IF:$<BOOL:$<TARGET_PROPERTY:OPTFARM_STATIC_DEPENDENCIES>>,${mirror},${item}>")
    endif()
    list(APPEND items ${item})
  endforeach()
  set(${out} ${items} PARENT_SCOPE)
endfunction()

# A program's own relocations in a tenth of the space. Some linkers take the flag
# and make programs that do not start.
set(OPTFARM_PACK_RELOCATIONS -Wl,-z,pack-relative-relocs)
if(OPTFARM_STATIC_DEPENDENCIES AND NOT OPTFARM_STATIC)
  set(CMAKE_REQUIRED_LINK_OPTIONS ${OPTFARM_PACK_RELOCATIONS})
  check_cxx_source_runs(
    "const char* const kTexts[] = {\"a\", \"b\"};
     int main(int argc, char**) { return kTexts[argc - 1][0] != 'a'; }"
    OPTFARM_CAN_PACK_RELOCATIONS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
endif()

function(optfarm_link_statically program shared_cxx)
  set_target_properties(${program} PROPERTIES OPTFARM_STATIC_DEPENDENCIES ON)
  get_property(shared GLOBAL PROPERTY OPTFARM_NOT_STATIC)
  list(REMOVE_DUPLICATES shared)
  if(OPTFARM_STATIC)
    if(shared)
      message(FATAL_ERROR "${program} is to load nothing, but has no static library of ${shared}")
    endif()
    target_sources(${program} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/lean_grpc.cc)
    target_link_options(${program} PRIVATE -static -Wl,--gc-sections -s)
  elseif(shared)
    # Such a library may bring the shared standard library; one is enough.
    message(STATUS "${program} loads ${shared}: no static library was found")
  elseif(NOT shared_cxx)
    target_link_options(${program} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  if(OPTFARM_CAN_PACK_RELOCATIONS)
    target_link_options(${program} PRIVATE ${OPTFARM_PACK_RELOCATIONS})
  endif()
endfunction()
