# The scale of the fusion solver; not part of `all`.
add_executable(fusion-solver EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/fusion_solver.cpp)
target_compile_options(fusion-solver PRIVATE -Wall -Wextra -Werror)
target_link_libraries(fusion-solver PRIVATE kelpie_driver)
