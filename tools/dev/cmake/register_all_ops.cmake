# Writes the function that calls each Register function of the ops, in the order of their names:
#
#   cmake -DFOLDER=operators -DOUT=register_all_ops.cc -P register_all_ops.cmake
#
# A Register function begins a line of a source file: `void RegisterRelu(OpRegistry& ops) {`.
file(GLOB_RECURSE sources ${FOLDER}/*.cc ${FOLDER}/*.cu)
set(begin "^void (Register[A-Za-z0-9]+)\\(OpRegistry& ops\\) {")
set(functions)
foreach(source ${sources})
  file(STRINGS ${source} lines REGEX "${begin}")
  foreach(line ${lines})
    string(REGEX MATCH "${begin}" ignored "${line}")
    list(APPEND functions ${CMAKE_MATCH_1})
  endforeach()
endforeach()
list(SORT functions)
set(declarations)
set(calls)
foreach(function ${functions})
  string(APPEND declarations "void ${function}(OpRegistry& ops);\n")
  string(APPEND calls "  ${function}(ops);\n")
endforeach()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[
// Written by tools/dev/cmake/register_all_ops.cmake.
#include "operators/all_ops.h"

namespace penstock {

@declarations@
void RegisterAllOps(OpRegistry& ops) {
@calls@}

}  // namespace penstock
]])
