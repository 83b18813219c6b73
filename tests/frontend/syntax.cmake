find_package(nlohmann_json REQUIRED)
target_sources(test_frontend PRIVATE
  ast_print_test.cpp
  diagnostic_ids_test.cpp
  parser_conformance_test.cpp
  parser_limits_test.cpp
  form_reader_test.cpp
  parser_test.cpp
  recovery_test.cpp
  syntax_errors_test.cpp)
target_link_libraries(test_frontend PRIVATE nlohmann_json::nlohmann_json)
