# cmake -DSOURCE=FOLDER -DOUTPUT=FILE.cpp -P commit.cmake: defines build_commit() (tools/cli/build_commit.h).
# FILE is written only if the commit has changed, so that an unchanged tree compiles nothing.
set(commit "")
file(REAL_PATH ${SOURCE} SOURCE)  # git resolves symbolic links, too
execute_process(COMMAND git -C ${SOURCE} rev-parse HEAD
  OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel
  OUTPUT_VARIABLE repository OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
# A copy of the sources inside another repository does not have that repository's commit.
if(failed EQUAL 0 AND repository STREQUAL SOURCE)
  set(commit ${head})
  execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(NOT changes STREQUAL "")
    string(APPEND commit ", with changes")
  endif()
endif()
set(text "#include \"tools/cli/build_commit.h\"\n
std::string_view rk::build_commit() { return \"${commit}\"; }\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUTPUT} "${text}")
endif()
