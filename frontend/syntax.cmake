# Text to syntax tree.
target_sources(kelpie_frontend PRIVATE
  ast_builder.cpp
  ast_print.cpp
  form_parser.cpp
  form_reader.cpp
  form_scanner.cpp
  lexer.cpp
  lexical_mistake.cpp
  misread_text.cpp
  parser.cpp
  pattern_advice.cpp
  surroundings.cpp
  syntax_advice.cpp
  syntax_mistake.cpp
  text.cpp
  token_layout.cpp)
# ANTLR's headers stay inside these few files.
target_link_libraries(kelpie_frontend PRIVATE kelpie_grammar_Nesl)
