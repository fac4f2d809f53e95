# optfarm-engine, beside optctl and optfarm-agent, and what they share with it.
# It loads a user's shared library at run time, which a static program cannot:
# so it is linked to the C library alone, also where the agent is linked to
# nothing, and compiled without any other of our libraries.

optfarm_room(engine_host LINK optfarm_base)

file(GLOB engine_host_sources CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/engine_host/*.cc)
add_executable(optfarm-engine ${engine_host_sources}
               ${PROJECT_SOURCE_DIR}/base/sandbox.cc
               ${PROJECT_SOURCE_DIR}/base/seccomp_filter.cc)
target_include_directories(optfarm-engine PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(optfarm-engine PRIVATE optfarm_warnings ${CMAKE_DL_LIBS})
if(NOT OPTFARM_SANITIZE)
  target_link_options(optfarm-engine PRIVATE -static-libstdc++ -static-libgcc
                      -Wl,-z,relro,-z,now -Wl,--gc-sections)
endif()
