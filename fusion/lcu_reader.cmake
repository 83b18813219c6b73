# The reader of λcu text is a library of its own: fusion does not need it, tests and the driver do.
kelpie_library(lcu_reader SOURCES lcu_reader.cpp lcu_expr_reader.cpp LINK kelpie_ir kelpie_grammar_Lcu)
