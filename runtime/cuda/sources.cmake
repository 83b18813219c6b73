# The CUDA target. What needs no toolkit is always built (tests run it on an emulated device).
target_sources(kelpie_runtime PRIVATE ${CMAKE_CURRENT_LIST_DIR}/cuda_target.cpp)
