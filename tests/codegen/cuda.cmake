# Tests of the CUDA generator: emulation (needs no GPU, no toolkit), NVRTC where there is one.
find_package(Boost REQUIRED COMPONENTS context)
kelpie_test(cuda SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/cuda_emulation_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_nvrtc_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel_resources_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/last_writers_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/emulated_device.cpp
  ${CMAKE_CURRENT_LIST_DIR}/known_kernels.cpp
  ${CMAKE_CURRENT_LIST_DIR}/division_cases.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel_runs.cpp
  ${CMAKE_CURRENT_LIST_DIR}/random_data.cpp
  ${CMAKE_CURRENT_LIST_DIR}/random_kernel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_split_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/segment_numbers_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/segment_values_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/warp_items_test.cpp
  LINK kelpie_fusion kelpie_runtime Boost::context ${CMAKE_DL_LIBS})
add_dependencies(test_cuda kelpie)
target_include_directories(test_cuda PRIVATE ${CMAKE_CURRENT_LIST_DIR})
target_compile_definitions(test_cuda PRIVATE KELPIE_HOST_COMPILER="${CMAKE_CXX_COMPILER}" KELPIE_COMMAND="$<TARGET_FILE:kelpie>")
kelpie_test(gpu SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/gpu_permute_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gpu_records_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gpu_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/known_kernels.cpp
  ${CMAKE_CURRENT_LIST_DIR}/division_cases.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel_runs.cpp
  ${CMAKE_CURRENT_LIST_DIR}/random_data.cpp
  ${CMAKE_CURRENT_LIST_DIR}/random_kernel.cpp
  LINK kelpie_fusion kelpie_runtime)
kelpie_test(cuda_programs SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/compile_ahead_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_program_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/device_draws_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/host_reader_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/launch_memory_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/launch_queue_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/long_places_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/meanwhile_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/out_of_memory_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/records_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/refilled_loop_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/run_ahead_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/short_arrays_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/emulated_device.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel_runs.cpp
  ${CMAKE_CURRENT_LIST_DIR}/random_data.cpp
  ${CMAKE_CURRENT_LIST_DIR}/random_kernel.cpp
  ${PROJECT_SOURCE_DIR}/tests/flatten/program_runner.cpp
  LINK kelpie_flatten kelpie_frontend kelpie_fusion kelpie_lcu_reader kelpie_runtime kelpie_services Boost::context
       ${CMAKE_DL_LIBS})
target_include_directories(test_cuda_programs PRIVATE ${CMAKE_CURRENT_LIST_DIR})
target_compile_definitions(test_cuda_programs PRIVATE KELPIE_HOST_COMPILER="${CMAKE_CXX_COMPILER}")
