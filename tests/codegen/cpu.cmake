kelpie_test(codegen_cpu SOURCES cpu_test.cpp LINK kelpie_runtime)
target_include_directories(test_codegen_cpu PRIVATE ${PROJECT_SOURCE_DIR})
