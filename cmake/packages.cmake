# Debian packages: one a program, by scripts/package (CPack). A daemon's package
# brings its unit, its flags as a conffile in /etc/optfarm, and a user of its
# own. From an Arm build also the program that agents send to phones.

include(GNUInstallDirs)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build/packages)
set(CPACK_PACKAGE_CONTACT "Optfarm <optfarm@localhost>")
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENTS_ALL)
if(OPTFARM_STATIC)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(android_abi arm64-v8a)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE armhf)
  set(android_abi armeabi-v7a)
endif()

# optfarm_package(COMPONENT PACKAGE DESCRIPTION): a package of what is installed
# as COMPONENT.
function(optfarm_package component package description)
  string(TOUPPER ${component} id)
  # scripts/package writes the list of what the program is made of.
  if(component STREQUAL "phones")
    set(program optfarm-agent)
  else()
    set(program ${package})
  endif()
  install(FILES ${CMAKE_BINARY_DIR}/package/${program}.cdx.json
          RENAME bill_of_materials.cdx.json OPTIONAL
          DESTINATION share/doc/${package} COMPONENT ${component})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright
          DESTINATION share/doc/${package} COMPONENT ${component})
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  foreach(variable CPACK_COMPONENTS_ALL CPACK_DEBIAN_${id}_PACKAGE_DEPENDS
          CPACK_DEBIAN_${id}_PACKAGE_CONTROL_EXTRA
          CPACK_DEBIAN_${id}_PACKAGE_SUGGESTS
          CPACK_DEBIAN_${id}_PACKAGE_ARCHITECTURE)
    set(${variable} "${${variable}}" PARENT_SCOPE)
  endforeach()
  set(CPACK_DEBIAN_${id}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${id}_DESCRIPTION "${description}" PARENT_SCOPE)
endfunction()

# optfarm_daemon_package(COMPONENT DESCRIPTION): program optfarm-COMPONENT.
macro(optfarm_daemon_package component description)
  set(DAEMON optfarm-${component})
  string(TOUPPER ${component} id)
  install(TARGETS ${DAEMON} RUNTIME DESTINATION bin COMPONENT ${component})
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/${DAEMON}.service
          DESTINATION /lib/systemd/system COMPONENT ${component})
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/config/${component}.env
          DESTINATION /etc/optfarm COMPONENT ${component})
  set(control ${CMAKE_BINARY_DIR}/package/${component})
  foreach(script postinst prerm postrm)
    configure_file(${PROJECT_SOURCE_DIR}/deploy/debian/${script}.in
                   ${control}/${script} @ONLY FILE_PERMISSIONS
                   OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                   WORLD_READ WORLD_EXECUTE)
  endforeach()
  file(WRITE ${control}/conffiles "/etc/optfarm/${component}.env\n")
  set(CPACK_DEBIAN_${id}_PACKAGE_CONTROL_EXTRA
      "${control}/postinst;${control}/prerm;${control}/postrm;${control}/conffiles")
  set(CPACK_DEBIAN_${id}_PACKAGE_DEPENDS "passwd, init-system-helpers")
  optfarm_package(${component} ${DAEMON} "${description}")
endmacro()

set(CPACK_DEBIAN_AGENT_PACKAGE_SUGGESTS "adb, optfarm-phones")
optfarm_daemon_package(agent "Optfarm's device agent
Leases benchmark tasks from an Optfarm server and benchmarks TensorFlow graphs
on this machine or on connected phones.")
if(OPTFARM_AGENT_ONLY)
  install(PROGRAMS $<TARGET_FILE:optfarm-agent>
          DESTINATION lib/optfarm/phones COMPONENT phones
          RENAME optfarm-agent-${android_abi})
  set(CPACK_DEBIAN_PHONES_PACKAGE_ARCHITECTURE all)
  optfarm_package(phones optfarm-phones-${CPACK_DEBIAN_PACKAGE_ARCHITECTURE}
    "Optfarm's benchmark program for phones (${android_abi})
The program that an agent with --driver=adb pushes to phones.")
else()
  install(FILES ${PROJECT_SOURCE_DIR}/docs/server.md
          DESTINATION share/doc/optfarm-server COMPONENT server)
  optfarm_daemon_package(server "Optfarm's server
Accepts TensorFlow graphs for optimization and benchmarks, hands out tasks, and
stores every result.")
  optfarm_daemon_package(worker "Optfarm's worker
Leases optimize tasks from an Optfarm server: rewrites TensorFlow graphs by
recipe and verifies that they still give the same answers.")
  # Manual pages and completion are in optctl's own words, which only the
  # machine that it is built for can ask it for.
  if(NOT CMAKE_CROSSCOMPILING)
    install(CODE [[
      set(share "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share")
      file(REMOVE_RECURSE "${share}/man/man1")
      file(MAKE_DIRECTORY "${share}/man/man1")
      execute_process(COMMAND "$<TARGET_FILE:optctl>" __man "${share}/man/man1"
                      COMMAND_ERROR_IS_FATAL ANY)
      file(GLOB pages "${share}/man/man1/*.1")
      execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
      foreach(place bash:bash-completion/completions/optctl
                    zsh:zsh/vendor-completions/_optctl
                    fish:fish/vendor_completions.d/optctl.fish)
        string(REPLACE ":" ";" place ${place})
        list(GET place 0 shell)
        list(GET place 1 file)
        get_filename_component(folder "${share}/${file}" DIRECTORY)
        file(MAKE_DIRECTORY "${folder}")
        execute_process(COMMAND "$<TARGET_FILE:optctl>" completion ${shell}
                        OUTPUT_FILE "${share}/${file}"
                        COMMAND_ERROR_IS_FATAL ANY)
      endforeach()
    ]] COMPONENT tools)
  endif()
  install(TARGETS optfarm-engine RUNTIME DESTINATION bin COMPONENT tools)
  optfarm_package(tools optctl "Optfarm's command line, and TensorFlow's graph tools
Submits models to an Optfarm server and queries its results; transforms and
inspects graphs without a server.")
endif()
include(CPack)
