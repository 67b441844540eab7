# penstock_library(name [SUBFOLDERS folders...] [DEPENDS targets...]): the static library of all .cc files in this
# folder and in the named folders below it.
# penstock_libraries is all of them.
add_library(penstock_libraries INTERFACE)
function(penstock_library name)
  cmake_parse_arguments(ARG "" "" "SUBFOLDERS;DEPENDS" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(folder IN LISTS ARG_SUBFOLDERS)
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(NOT sources)
    message(FATAL_ERROR "${name}: no sources in ${patterns}")
  endif()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC penstock_options ${ARG_DEPENDS})
  penstock_compile_together(${name} 4)
  set_property(TARGET penstock_libraries APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${name})
endfunction()
