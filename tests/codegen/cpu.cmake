# Tests of the CPU generator.
kelpie_test(codegen_cpu SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/cpu_random_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cpu_speed_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cpu_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/emitter_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/keyed_segments_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/regular_reads_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/values_of_segments_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/work_ahead_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel_runs.cpp
  ${CMAKE_CURRENT_LIST_DIR}/random_data.cpp
  ${CMAKE_CURRENT_LIST_DIR}/random_kernel.cpp
  LINK kelpie_fusion kelpie_runtime)
target_include_directories(test_codegen_cpu PRIVATE ${PROJECT_SOURCE_DIR})
