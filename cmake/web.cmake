# optfarm_web(PAGE REPORT) compiles the web page into target PAGE, and the script
# of reports into target REPORT: npm brings what web/ needs when CMake
# configures, esbuild bundles web/src when it changes, and each bundle becomes
# one C++ file. Without the page, empty ones take their place.

set(OPTFARM_WEB AUTO CACHE STRING
    "The web page in optfarm-server: ON, OFF, or AUTO: where node and npm work")
set_property(CACHE OPTFARM_WEB PROPERTY STRINGS AUTO ON OFF)

# Sets ${result} to "" when FOLDER/node_modules has what FOLDER/package-lock.json
# lists, else to what is wrong.
function(optfarm_npm_install folder result)
  file(SHA256 ${folder}/package-lock.json wanted)
  set(stamp ${folder}/node_modules/.optfarm_installed)
  if(EXISTS ${stamp})
    file(READ ${stamp} there)
    if(there STREQUAL wanted)
      set(${result} "" PARENT_SCOPE)
      return()
    endif()
  endif()
  # Without a network it fails within seconds; each configuring tries again.
  execute_process(
    COMMAND ${OPTFARM_NPM} ci --no-audit --no-fund --ignore-scripts
            --prefer-offline --fetch-retries=2 --fetch-retry-mintimeout=1000
            --fetch-retry-maxtimeout=4000
    WORKING_DIRECTORY ${folder} TIMEOUT 120
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(code EQUAL 0)
    file(WRITE ${stamp} ${wanted})
    set(${result} "" PARENT_SCOPE)
  else()
    set(${result} "npm ci failed (${code}): ${output}" PARENT_SCOPE)
  endif()
endfunction()

# Sets ${result} to why the page cannot be built; "" when it can.
function(optfarm_prepare_web folder result)
  find_program(OPTFARM_NODE NAMES node nodejs)
  find_program(OPTFARM_NPM npm)
  if(NOT OPTFARM_NODE OR NOT OPTFARM_NPM)
    set(${result} "node or npm is not installed" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${OPTFARM_NODE} --version OUTPUT_VARIABLE version
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT version MATCHES "^v([0-9]+)" OR CMAKE_MATCH_1 LESS 18)
    set(${result} "node ${version} is older than 18" PARENT_SCOPE)
    return()
  endif()
  file(MAKE_DIRECTORY ${folder})
  foreach(name package.json package-lock.json .npmrc)
    configure_file(${PROJECT_SOURCE_DIR}/web/${name} ${folder}/${name} COPYONLY)
  endforeach()
  optfarm_npm_install(${folder} why)
  set(${result} "${why}" PARENT_SCOPE)
endfunction()

function(optfarm_web page report)
  set(folder ${PROJECT_BINARY_DIR}/web)
  set(page_source ${folder}/web_files.cc)
  set(report_source ${folder}/report_parts.cc)
  set(why "OPTFARM_WEB is OFF")
  if(OPTFARM_WEB)
    optfarm_prepare_web(${folder} why)
  endif()
  if(why AND OPTFARM_WEB AND NOT OPTFARM_WEB STREQUAL "AUTO")
    message(FATAL_ERROR "The web page (OPTFARM_WEB=ON): ${why}")
  endif()
  if(why)
    message(STATUS "built without the web page and HTML reports: ${why}")
    set(page_source ${PROJECT_SOURCE_DIR}/cmake/web_left_out.cc)
    set(report_source ${PROJECT_SOURCE_DIR}/cmake/report_left_out.cc)
    set(OPTFARM_WEB_BUILT OFF CACHE INTERNAL "")
  else()
    file(GLOB_RECURSE inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/src/*)
    add_custom_command(
      OUTPUT ${page_source} ${report_source}
      COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}/src
      COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/web/src
              ${folder}/src
      COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/web/build.mjs
              ${PROJECT_SOURCE_DIR}/web/tsconfig.json ${folder}
      COMMAND ${OPTFARM_NODE} build.mjs ${page_source} ${report_source}
      WORKING_DIRECTORY ${folder}
      DEPENDS ${inputs} ${PROJECT_SOURCE_DIR}/web/build.mjs
              ${PROJECT_SOURCE_DIR}/web/tsconfig.json
              ${folder}/package-lock.json
      COMMENT "Bundling the web page" VERBATIM)
    # One target makes both: two would run the command twice, side by side.
    add_custom_target(optfarm_web_bundle DEPENDS ${page_source} ${report_source})
    set(OPTFARM_WEB_BUILT ON CACHE INTERNAL "")
  endif()
  # Not among the rooms' own files: there is nothing in them to be checked.
  foreach(part page report)
    add_library(optfarm_web_${part} OBJECT ${${part}_source})
    target_link_libraries(optfarm_web_${part} PRIVATE optfarm_build optfarm_rpc)
    if(TARGET optfarm_web_bundle)
      add_dependencies(optfarm_web_${part} optfarm_web_bundle)
    endif()
    target_sources(${${part}} PRIVATE $<TARGET_OBJECTS:optfarm_web_${part}>)
  endforeach()
  target_link_libraries(optfarm_web_page PRIVATE optfarm_http)
endfunction()
