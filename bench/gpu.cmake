# Benchmarks on a GPU: Kelpie's kernels, and the same jobs with CUB and cuSPARSE where nvcc is, what gathers and divisions cost,
# and sorts within segments. Not part of `all`.
add_executable(gpu_bench EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/gpu_bench.cpp ${CMAKE_CURRENT_LIST_DIR}/gpu_jobs.cpp
               ${PROJECT_SOURCE_DIR}/tests/codegen/known_kernels.cpp)
target_link_libraries(gpu_bench PRIVATE kelpie_runtime)
if(KELPIE_NVCC)
  foreach(peer gpu_peers gpu_peer_spmv gpu_peer_types gather_floor quotients)
    add_custom_command(
      OUTPUT ${PROJECT_BINARY_DIR}/bench/${peer}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/bench
      COMMAND ${KELPIE_NVCC} -std=c++17 -O2 -arch=sm_90 -o ${PROJECT_BINARY_DIR}/bench/${peer}
              ${CMAKE_CURRENT_LIST_DIR}/${peer}.cu $<$<STREQUAL:${peer},gpu_peer_spmv>:-lcusparse>
              $<$<STREQUAL:${peer},quotients>:-fmad=false>
      DEPENDS ${CMAKE_CURRENT_LIST_DIR}/${peer}.cu ${CMAKE_CURRENT_LIST_DIR}/cub_peer.cuh
              ${CMAKE_CURRENT_LIST_DIR}/segment_lengths.h
      COMMAND_EXPAND_LISTS VERBATIM)
  endforeach()
  add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/bench/segment_sorts
    COMMAND ${KELPIE_NVCC} -std=c++17 -O2 -arch=sm_90 --extended-lambda -I${PROJECT_SOURCE_DIR} -o ${PROJECT_BINARY_DIR}/bench/segment_sorts
            ${CMAKE_CURRENT_LIST_DIR}/segment_sorts.cu ${PROJECT_SOURCE_DIR}/runtime/cuda/grade_cub.cu
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/segment_sorts.cu ${CMAKE_CURRENT_LIST_DIR}/programs/peer.cuh ${KELPIE_GRADE_SOURCES})
  add_custom_target(gpu_peers DEPENDS ${PROJECT_BINARY_DIR}/bench/gpu_peers ${PROJECT_BINARY_DIR}/bench/gpu_peer_spmv
                    ${PROJECT_BINARY_DIR}/bench/gpu_peer_types ${PROJECT_BINARY_DIR}/bench/gather_floor ${PROJECT_BINARY_DIR}/bench/quotients
                    ${PROJECT_BINARY_DIR}/bench/segment_sorts)
endif()
# What launches and waits cost, and the peers of bench/programs. Without fused multiply-add, which Kelpie does without, too,
# a point on a line is on the line, and both count the same steps.
if(KELPIE_NVCC)
  set(program_peers)
  foreach(peer sort histogram string_search mandelbrot matrices nbody kmeans breadth_first_search components triangles quickhull jacobi barnes_hut delaunay)
    set(binary ${PROJECT_BINARY_DIR}/bench/${peer}_peer)
    add_custom_command(
      OUTPUT ${binary}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/bench
      COMMAND ${KELPIE_NVCC} -std=c++17 -O2 -arch=sm_90 --extended-lambda
              $<$<IN_LIST:${peer},quickhull$<SEMICOLON>mandelbrot$<SEMICOLON>jacobi$<SEMICOLON>matrices$<SEMICOLON>barnes_hut$<SEMICOLON>delaunay>:-fmad=false> -o ${binary}
              ${CMAKE_CURRENT_LIST_DIR}/programs/${peer}_peer.cu
      DEPENDS ${CMAKE_CURRENT_LIST_DIR}/programs/${peer}_peer.cu ${CMAKE_CURRENT_LIST_DIR}/programs/peer.cuh
              ${CMAKE_CURRENT_LIST_DIR}/programs/graph_peer.cuh
      COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND program_peers ${binary})
  endforeach()
  add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/bench/launch_costs
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/bench
    COMMAND ${KELPIE_NVCC} -std=c++17 -O2 -arch=sm_90 -o ${PROJECT_BINARY_DIR}/bench/launch_costs
            ${CMAKE_CURRENT_LIST_DIR}/launch_costs.cu
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/launch_costs.cu)
  add_custom_target(program_peers DEPENDS ${program_peers} ${PROJECT_BINARY_DIR}/bench/launch_costs)
endif()
