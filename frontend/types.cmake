# Types, the library, and specialisation to Core.
file(GLOB KELPIE_LIBRARY CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/library/*.nesl)
string(REPLACE ";" "," KELPIE_LIBRARY_LIST "${KELPIE_LIBRARY}")
set(KELPIE_LIBRARY_SOURCE ${CMAKE_CURRENT_BINARY_DIR}/library_files.cpp)
add_custom_command(
  OUTPUT ${KELPIE_LIBRARY_SOURCE}
  COMMAND ${CMAKE_COMMAND} -DLIBRARY_FILES=${KELPIE_LIBRARY_LIST} -DOUTPUT=${KELPIE_LIBRARY_SOURCE}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/embed_library.cmake
  DEPENDS ${KELPIE_LIBRARY} ${CMAKE_CURRENT_SOURCE_DIR}/embed_library.cmake
  VERBATIM)
target_sources(kelpie_frontend PRIVATE
  ${KELPIE_LIBRARY_SOURCE}
  ast_names.cpp
  builtins.cpp
  constant_literal.cpp
  environment.cpp
  foreign_words.cpp
  ground_type.cpp
  infer.cpp
  infer_forms.cpp
  infer_messages.cpp
  infer_slips.cpp
  library.cpp
  nesl_type.cpp
  serial_check.cpp
  session.cpp
  specialise.cpp
  specialise_builtins.cpp
  type_expression.cpp)
