# Writes OUTPUT, a C++ source that defines the functions of codegen/cpu/support_text.h from the headers in FOLDER.
file(READ ${FOLDER}/reduction_order.h order)
file(READ ${FOLDER}/kelpie_cpu.h support)
string(REPLACE "#pragma once\n" "" order "${order}")
string(REPLACE "#pragma once\n" "" support "${support}")
file(WRITE ${OUTPUT} "#include \"codegen/cpu/support_text.h\"\n\nnamespace kelpie::codegen::cpu {\n\n\
std::string_view reductionOrderText() {\n  return R\"KELPIE(${order})KELPIE\";\n}\n\n\
std::string_view supportText() {\n  return R\"KELPIE(${support})KELPIE\";\n}\n\n\
}  // namespace kelpie::codegen::cpu\n")
