# Defines what `cmake --install` installs, and the package that `cpack` builds from it.
#
# Installed programs are called rankine-train, rankine-eval, ...: `eval` is a shell builtin, and the
# other names are too common for a PATH. Man pages and completions are generated from --help.

if(RK_SANITIZE OR RK_FUZZ)  # in which --help itself would be slow
  install(CODE "message(FATAL_ERROR \"a build for finding bugs is not installed; use BUILD=build\")")
  return()
endif()

set(manuals "")
set(links ${CMAKE_BINARY_DIR}/links)
foreach(program ${programs})
  set(name rankine-${program})
  set(man ${CMAKE_BINARY_DIR}/man/${name}.1)
  set(completion ${CMAKE_BINARY_DIR}/completions/${name})
  add_custom_command(OUTPUT ${man} ${completion}
    COMMAND ${CMAKE_SOURCE_DIR}/tools/scripts/manual.sh $<TARGET_FILE:${program}> ${name} ${CMAKE_BINARY_DIR}
      $<TARGET_FILE:probe>
    DEPENDS ${program} probe ${CMAKE_SOURCE_DIR}/tools/scripts/manual.sh VERBATIM)
  list(APPEND manuals ${man} ${completion})
  file(MAKE_DIRECTORY ${links})
  file(CREATE_LINK ../lib/rankine/${program} ${links}/${name} SYMBOLIC)
  install(TARGETS ${program} DESTINATION lib/rankine)
  install(FILES ${links}/${name} DESTINATION bin)
  install(FILES ${man} DESTINATION share/man/man1)
  install(FILES ${completion} DESTINATION share/bash-completion/completions)
endforeach()
add_custom_target(manuals ALL DEPENDS ${manuals})
add_dependencies(programs manuals)

install(DIRECTORY recipes DESTINATION share/rankine)
# What README.md and the pages of docs/ link to stands where it stands in the tree.
install(DIRECTORY docs DESTINATION share/doc/rankine)
file(CREATE_LINK ../../rankine/recipes ${links}/recipes SYMBOLIC)
install(FILES ${links}/recipes DESTINATION share/doc/rankine)
install(FILES tests/golden/losses/README.md DESTINATION share/doc/rankine/tests/golden/losses)
install(DIRECTORY bench/results DESTINATION share/doc/rankine/bench)
install(FILES README.md CHANGELOG.md CITATION.cff LICENSE DESTINATION share/doc/rankine)

# No package of code compiled for this machine's processor: others could meet illegal instructions.
if(RK_NATIVE)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "The Rankine authors")
set(CPACK_PACKAGE_CONTACT "The Rankine authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "training engine for ranking losses and image retrieval")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# Depend on the packages of the linked libraries, in sufficient versions.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
