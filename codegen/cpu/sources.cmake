# The CPU generator, with its support headers embedded as text.
set(KELPIE_CPU_SUPPORT ${PROJECT_BINARY_DIR}/codegen/cpu/support_text.cpp)
add_custom_command(
  OUTPUT ${KELPIE_CPU_SUPPORT}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${KELPIE_CPU_SUPPORT} -DFOLDER=${CMAKE_CURRENT_LIST_DIR}
          -P ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  DEPENDS ${CMAKE_CURRENT_LIST_DIR}/reduction_order.h ${CMAKE_CURRENT_LIST_DIR}/kelpie_cpu.h
          ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  VERBATIM)
target_sources(kelpie_codegen PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/by_segments.cpp
  ${CMAKE_CURRENT_LIST_DIR}/collectives.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cpu_module.cpp
  ${CMAKE_CURRENT_LIST_DIR}/element_loop.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel_text.cpp
  ${CMAKE_CURRENT_LIST_DIR}/segment_scope.cpp
  ${CMAKE_CURRENT_LIST_DIR}/unbounded_passes.cpp
  ${KELPIE_CPU_SUPPORT})
