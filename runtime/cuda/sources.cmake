# The CUDA target. The driver and NVRTC are opened at run time, so it is built everywhere; sorting by CUB is compiled in
# where the toolkit is (nvcc), and otherwise goes by way of the host.
target_sources(kelpie_runtime PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/code_cache.cpp
  ${CMAKE_CURRENT_LIST_DIR}/compile_ahead.cpp
  ${CMAKE_CURRENT_LIST_DIR}/compiler_process.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_launch.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_target.cpp
  ${CMAKE_CURRENT_LIST_DIR}/device_draws.cpp
  ${CMAKE_CURRENT_LIST_DIR}/device_grade.cpp
  ${CMAKE_CURRENT_LIST_DIR}/driver_device.cpp
  ${CMAKE_CURRENT_LIST_DIR}/host_evaluation.cpp
  ${CMAKE_CURRENT_LIST_DIR}/host_reader.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel_compiler.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel_resources.cpp
  ${CMAKE_CURRENT_LIST_DIR}/launch_queue.cpp
  ${CMAKE_CURRENT_LIST_DIR}/launch_records.cpp
  ${CMAKE_CURRENT_LIST_DIR}/nvrtc_compiler.cpp
  ${CMAKE_CURRENT_LIST_DIR}/outcome_board.cpp
  ${CMAKE_CURRENT_LIST_DIR}/shared_library.cpp)
target_link_libraries(kelpie_runtime PUBLIC ${CMAKE_DL_LIBS})

# Machine code for Hopper, and portable code that the driver compiles elsewhere.
find_program(KELPIE_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME ENV CUDA_PATH PATH_SUFFIXES bin)
if(KELPIE_NVCC)
  get_filename_component(KELPIE_CUDA_HOME ${KELPIE_NVCC}/../.. ABSOLUTE)
  find_library(KELPIE_CUDART cudart_static HINTS ${KELPIE_CUDA_HOME}/lib64 ${KELPIE_CUDA_HOME}/targets/x86_64-linux/lib)
endif()
if(KELPIE_NVCC AND KELPIE_CUDART)
  set(KELPIE_GRADE_SOURCES ${CMAKE_CURRENT_LIST_DIR}/grade_cub.cu ${CMAKE_CURRENT_LIST_DIR}/grade_cub.h
      ${CMAKE_CURRENT_LIST_DIR}/grade_segments.cuh ${CMAKE_CURRENT_LIST_DIR}/grade_words.cuh)
  set(KELPIE_GRADE_SOURCES ${KELPIE_GRADE_SOURCES} PARENT_SCOPE)
  set(KELPIE_LAST_WRITERS_SOURCES ${CMAKE_CURRENT_LIST_DIR}/last_writers.cu ${CMAKE_CURRENT_LIST_DIR}/last_writers.h)
  function(kelpie_compile_ahead OBJECT SOURCE)
    add_custom_command(
      OUTPUT ${OBJECT}
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${KELPIE_NVCC} -std=c++17 -O2 -c -Xcompiler=-fPIC -I${PROJECT_SOURCE_DIR}
              -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_80,code=compute_80 -o ${OBJECT} ${SOURCE}
      DEPENDS ${ARGN}
      VERBATIM)
    set_source_files_properties(${OBJECT} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  endfunction()
  set(KELPIE_GRADE_OBJECT ${CMAKE_CURRENT_BINARY_DIR}/grade_cub.o)
  set(KELPIE_LAST_WRITERS_OBJECT ${CMAKE_CURRENT_BINARY_DIR}/last_writers.o)
  kelpie_compile_ahead(${KELPIE_GRADE_OBJECT} ${CMAKE_CURRENT_LIST_DIR}/grade_cub.cu ${KELPIE_GRADE_SOURCES})
  kelpie_compile_ahead(${KELPIE_LAST_WRITERS_OBJECT} ${CMAKE_CURRENT_LIST_DIR}/last_writers.cu ${KELPIE_LAST_WRITERS_SOURCES})
  add_library(kelpie_grade STATIC ${KELPIE_GRADE_OBJECT} ${KELPIE_LAST_WRITERS_OBJECT})
  set_target_properties(kelpie_grade PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(kelpie_grade INTERFACE ${KELPIE_CUDART} rt Threads::Threads ${CMAKE_DL_LIBS})
  target_link_libraries(kelpie_runtime PUBLIC kelpie_grade)
  target_compile_definitions(kelpie_runtime PRIVATE KELPIE_HAVE_CUB)
endif()
