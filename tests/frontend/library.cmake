target_sources(test_frontend PRIVATE
  interpreter_test.cpp
  library_test.cpp
  streams_test.cpp
  value_printer_test.cpp)
target_link_libraries(test_frontend PRIVATE kelpie_services)

find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME library_docs_are_current COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/library_docs.py --check)
