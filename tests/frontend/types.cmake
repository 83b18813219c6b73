target_sources(test_frontend PRIVATE
  infer_test.cpp
  nesl_type_test.cpp
  session_test.cpp
  slips_test.cpp
  specialise_test.cpp)
