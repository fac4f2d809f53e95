# The runtime as apps link it: shared library optfarm_runtime, which shows only
# the symbols of engine/api/c_api.h, and the same as one static archive; both
# with headers, a CMake package (find_package(optfarm)) and pkg-config files.
#
#   cmake --install build/release --component runtime      the shared library
#   cmake --install build/release --component runtime_dev  all else

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# OPTFARM_API_VERSION's thousands.
set(OPTFARM_RUNTIME_SOVERSION 1)
# What lies in the archives; other programs of ours do without some of it.
set(OPTFARM_RUNTIME_ROOMS optfarm_engine_api optfarm_engine_formats
    ${OPTFARM_RUNTIME_LAYERS} optfarm_engine_graph optfarm_engine_pictures
    optfarm_base optfarm_proto_tensorflow)

add_library(optfarm_runtime SHARED $<TARGET_OBJECTS:optfarm_engine_api>)
target_link_libraries(optfarm_runtime PRIVATE ${OPTFARM_RUNTIME_ROOMS})
target_include_directories(optfarm_runtime INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set(symbols ${PROJECT_SOURCE_DIR}/cmake/runtime_symbols.map)
target_link_options(optfarm_runtime PRIVATE -Wl,--version-script=${symbols}
                    -Wl,--gc-sections -Wl,--as-needed)
set_target_properties(optfarm_runtime PROPERTIES
  EXPORT_NAME runtime LINK_DEPENDS ${symbols}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
  VERSION ${PROJECT_VERSION} SOVERSION ${OPTFARM_RUNTIME_SOVERSION})

# One archive out of the rooms' archives.
set(OPTFARM_PROTOBUF protobuf)
if(OPTFARM_LITE_RUNTIME)
  set(OPTFARM_PROTOBUF protobuf-lite)
endif()
set(archive ${CMAKE_BINARY_DIR}/lib/liboptfarm_runtime.a)
set(room_files)
foreach(room ${OPTFARM_RUNTIME_ROOMS})
  get_target_property(type ${room} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    continue()
  endif()
  list(APPEND room_files $<TARGET_FILE:${room}>)
endforeach()
add_custom_command(
  OUTPUT ${archive}
  COMMAND ${CMAKE_COMMAND} -DAR=${CMAKE_AR} -DOUTPUT=${archive}
          "-DARCHIVES=${room_files}"
          -P ${PROJECT_SOURCE_DIR}/cmake/merge_archives.cmake
  DEPENDS ${OPTFARM_RUNTIME_ROOMS} ${PROJECT_SOURCE_DIR}/cmake/merge_archives.cmake
  VERBATIM)
add_custom_target(optfarm_runtime_static ALL DEPENDS ${archive})

install(TARGETS optfarm_runtime EXPORT optfarmTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
  NAMELINK_COMPONENT runtime_dev)
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT runtime_dev)
install(FILES engine/api/c_api.h engine/api/runtime.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/optfarm COMPONENT runtime_dev)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/optfarm)
install(EXPORT optfarmTargets NAMESPACE optfarm:: DESTINATION ${package_dir}
        COMPONENT runtime_dev)
configure_package_config_file(cmake/optfarmConfig.cmake.in
  ${CMAKE_BINARY_DIR}/package/optfarmConfig.cmake
  INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(
  ${CMAKE_BINARY_DIR}/package/optfarmConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/optfarmConfig.cmake
              ${CMAKE_BINARY_DIR}/package/optfarmConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT runtime_dev)

# From the folder of the pkg-config files, so that the package can be moved.
file(RELATIVE_PATH OPTFARM_PC_TO_PREFIX
     /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(name optfarm_runtime optfarm_runtime_static)
  configure_file(cmake/${name}.pc.in ${CMAKE_BINARY_DIR}/package/${name}.pc
                 @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/package/${name}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT runtime_dev)
endforeach()
