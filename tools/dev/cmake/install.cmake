# The CMake package: `cmake --install build/release --component development --prefix DIR` installs libraries, headers
# and penstockConfig.cmake, for projects that contain
#
#   find_package(penstock REQUIRED)
#   target_link_libraries(mine PRIVATE penstock::penstock)
#
# Include it after all libraries and before their users: the package contains the libraries that exist by then.
include(CMakePackageConfigHelpers)
set(headers_to include/penstock)
set(config_to lib/cmake/penstock)

get_target_property(penstock_installed penstock_libraries INTERFACE_LINK_LIBRARIES)
list(APPEND penstock_installed
  penstock_options penstock_proto penstock_framework penstock_transpiler penstock_operators penstock_executor)

add_library(penstock_all INTERFACE)
set_target_properties(penstock_all PROPERTIES EXPORT_NAME penstock)
target_link_libraries(penstock_all INTERFACE
  penstock_executor penstock_transpiler penstock_operators penstock_framework)
target_include_directories(penstock_all INTERFACE $<INSTALL_INTERFACE:${headers_to}>)
target_compile_features(penstock_all INTERFACE cxx_std_20)

install(TARGETS penstock_all ${penstock_installed} EXPORT penstock
  ARCHIVE DESTINATION lib COMPONENT development)
install(EXPORT penstock NAMESPACE penstock:: FILE penstockTargets.cmake
  DESTINATION ${config_to} COMPONENT development)
foreach(folder framework operators transpiler executor)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${headers_to} COMPONENT development
    FILES_MATCHING PATTERN "*.h")
endforeach()
install(DIRECTORY ${PROJECT_BINARY_DIR}/framework/proto DESTINATION ${headers_to}/framework COMPONENT development
  FILES_MATCHING PATTERN "*.pb.h" PATTERN CMakeFiles EXCLUDE)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/penstockConfig.cmake.in
  ${PROJECT_BINARY_DIR}/penstockConfig.cmake INSTALL_DESTINATION ${config_to})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/penstockConfig.cmake ${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake
  DESTINATION ${config_to} COMPONENT development)
