// Included before anything else where Clang compiles against the ANTLR runtime. That runtime declares a class
// with members `const std::vector<std::string>` and a defaulted constructor, which GCC accepts and Clang 14
// does not: the members need initialisers. They get them here, and here only; the layout stays what it was.
#pragma once

#include <antlr4-common.h>
#define _literalNames \
  _literalNames {}
#define _symbolicNames \
  _symbolicNames {}
#define _displayNames \
  _displayNames {}
#include <Vocabulary.h>
#undef _literalNames
#undef _symbolicNames
#undef _displayNames
