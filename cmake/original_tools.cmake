# optfarm_original_tools(TARGET)
#
# Links with the names of TensorFlow's own tools to program TARGET, beside it in
# the build and in the installation: optctl does as the name it is called by
# says. client_cli/program/original_tool_table.cc has the same names, and a test that
# both agree.

set(OPTFARM_ORIGINAL_TOOLS
  benchmark_model
  compare_graphs
  convert_graphdef_memmapped_format
  freeze_graph
  graph_to_dot
  import_pb_to_tensorboard
  inspect_checkpoint
  label_image
  optimize_for_inference
  print_selective_registration_header
  strip_unused
  summarize_graph
  transform_graph)

function(optfarm_original_tools target)
  set(commands)
  foreach(name ${OPTFARM_ORIGINAL_TOOLS})
    list(APPEND commands COMMAND ${CMAKE_COMMAND} -E create_symlink
         $<TARGET_FILE_NAME:${target}> $<TARGET_FILE_DIR:${target}>/${name})
  endforeach()
  add_custom_command(TARGET ${target} POST_BUILD ${commands} VERBATIM)
  install(TARGETS ${target} RUNTIME DESTINATION bin COMPONENT tools)
  install(CODE "
    foreach(name ${OPTFARM_ORIGINAL_TOOLS})
      file(CREATE_LINK $<TARGET_FILE_NAME:${target}>
           \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/\${name}\" SYMBOLIC)
    endforeach()" COMPONENT tools)
endfunction()
