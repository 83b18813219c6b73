# Fits the constants of the cost model to kernels that were measured; not part of `all`.
add_executable(fit_costs EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/fit_costs.cpp)
target_compile_options(fit_costs PRIVATE -Wall -Wextra -Werror)
target_link_libraries(fit_costs PRIVATE kelpie_driver)
