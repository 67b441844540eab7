# What every target of ours is compiled with. Warnings are errors, but in the fuzz build: clang has others than GCC.
add_library(penstock_options INTERFACE)
target_include_directories(penstock_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(penstock_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Werror -Wno-missing-field-initializers>)
if(PENSTOCK_FUZZ)
  target_compile_options(penstock_options INTERFACE -Wno-error)
endif()
if(PENSTOCK_SANITIZE)
  target_compile_options(penstock_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${PENSTOCK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>
    -fdebug-prefix-map=${PROJECT_SOURCE_DIR}=.)  # reports name files from the root; ccache serves every clone
  target_link_options(penstock_options INTERFACE -fsanitize=${PENSTOCK_SANITIZE})
endif()
