target_sources(test_frontend PRIVATE
  interpreter_test.cpp
  value_printer_test.cpp)
target_link_libraries(test_frontend PRIVATE kelpie_services)
