# cmake -DAR=ar -DOUTPUT=x.a "-DARCHIVES=a.a;b.a" -P merge_archives.cmake
#
# One archive with the members of several; members of one name are all kept.

set(script "CREATE ${OUTPUT}.tmp\n")
foreach(archive ${ARCHIVES})
  string(APPEND script "ADDLIB ${archive}\n")
endforeach()
string(APPEND script "SAVE\nEND\n")
file(WRITE ${OUTPUT}.mri "${script}")
execute_process(COMMAND ${AR} -M INPUT_FILE ${OUTPUT}.mri
                COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${OUTPUT}.tmp ${OUTPUT})
file(REMOVE ${OUTPUT}.mri)
