# The C++ classes of engine/formats/tflite/schema.fbs, which flatc writes at build
# time. Files include <tflite/schema_generated.h> and link optfarm_tflite_schema.

set(schema ${PROJECT_SOURCE_DIR}/engine/formats/tflite/schema.fbs)
set(generated ${CMAKE_BINARY_DIR}/gen/tflite/schema_generated.h)
add_custom_command(
  OUTPUT ${generated}
  COMMAND ${FLATC_PROGRAM} --cpp --scoped-enums --gen-object-api
          -o ${CMAKE_BINARY_DIR}/gen/tflite ${schema}
  DEPENDS ${schema}
  VERBATIM)
add_custom_target(optfarm_tflite_schema_header DEPENDS ${generated})
add_library(optfarm_tflite_schema INTERFACE)
target_include_directories(optfarm_tflite_schema SYSTEM INTERFACE
  ${CMAKE_BINARY_DIR}/gen ${FLATBUFFERS_INCLUDE_DIR})
add_dependencies(optfarm_tflite_schema optfarm_tflite_schema_header)
