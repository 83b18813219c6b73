# The CUDA generator, with the device library embedded as text.
file(GLOB KELPIE_DEVICE_FILES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cuh)
set(KELPIE_DEVICE_LIBRARY ${PROJECT_BINARY_DIR}/codegen/cuda/device_library_text.cpp)
add_custom_command(
  OUTPUT ${KELPIE_DEVICE_LIBRARY}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${KELPIE_DEVICE_LIBRARY} "-DFILES=${KELPIE_DEVICE_FILES}"
          -P ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  DEPENDS ${KELPIE_DEVICE_FILES} ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  VERBATIM)
target_sources(kelpie_codegen PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/cuda_module.cpp
  ${CMAKE_CURRENT_LIST_DIR}/level_text.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_collectives.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_checks.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_elements.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_extremes.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_finish.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_frame.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_generator.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_groups.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_items.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_keys.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_lanes.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_plan.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_products.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_rows.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_segments.cpp
  ${CMAKE_CURRENT_LIST_DIR}/segment_values.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_shape.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_split.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_text.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pass_transposed.cpp
  ${CMAKE_CURRENT_LIST_DIR}/range_scans.cpp
  ${CMAKE_CURRENT_LIST_DIR}/segment_places.cpp
  ${KELPIE_DEVICE_LIBRARY})
