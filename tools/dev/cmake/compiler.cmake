# The compiler options of all our targets. Warnings are errors, except in the fuzz build: clang has other warnings.
add_library(penstock_options INTERFACE)
target_include_directories(penstock_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
target_compile_options(penstock_options INTERFACE
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Werror -Wno-missing-field-initializers>>)
if(PENSTOCK_FUZZ)
  target_compile_options(penstock_options INTERFACE -Wno-error)
endif()
if(PENSTOCK_SANITIZE)
  target_compile_options(penstock_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${PENSTOCK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>
    -fdebug-prefix-map=${PROJECT_SOURCE_DIR}=.)  # reports name files from the root; ccache serves every clone
  # AddressSanitizer already detects the use of a null pointer; the extra checks take a tenth of the build time.
  if(PENSTOCK_SANITIZE MATCHES "address.*undefined")
    target_compile_options(penstock_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,object-size>)
  endif()
  target_link_options(penstock_options INTERFACE -fsanitize=${PENSTOCK_SANITIZE})
  find_program(PENSTOCK_LLD ld.lld)
  if(PENSTOCK_LLD)  # each test is 400 MB here, which lld links in half of the time
    target_link_options(penstock_options INTERFACE $<$<LINK_LANGUAGE:CXX>:-fuse-ld=lld>)
  endif()
endif()

# penstock_compile_together(target COUNT): compiles the target's files COUNT at a time (a unity build). Most of the
# compile time of a small file goes into headers that its neighbours also include.
option(PENSTOCK_UNITY "Compile small source files several at a time" ON)
set(unity_factor 1)
if("$ENV{CI}" STREQUAL "true")  # CI compiles everything only once
  set(unity_factor 3)
endif()
set(PENSTOCK_UNITY_FACTOR ${unity_factor} CACHE STRING "Multiplies the number of files that are compiled at a time")
function(penstock_compile_together target count)
  math(EXPR count "${count} * ${PENSTOCK_UNITY_FACTOR}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PENSTOCK_UNITY} UNITY_BUILD_BATCH_SIZE ${count})
  if(PENSTOCK_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # GCC takes the included files for headers
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endfunction()
