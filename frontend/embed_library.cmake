# Writes a C++ source that holds the library files given by LIBRARY_FILES (a list) to OUTPUT.
set(content "#include \"frontend/library.h\"\n\nnamespace kelpie {\n\nconst std::vector<LibraryFile>& libraryFiles() {\n")
string(APPEND content "  static const std::vector<LibraryFile> files = {\n")
string(REPLACE "," ";" files "${LIBRARY_FILES}")
foreach(path ${files})
  get_filename_component(name ${path} NAME)
  # hex pairs: any byte may stand in a library file
  file(READ ${path} text HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" escaped "${text}")
  string(REGEX REPLACE "(................................................................................)"
         "\\1\"\n     \"" escaped "${escaped}")
  string(LENGTH "${text}" digits)
  math(EXPR bytes "${digits} / 2")
  string(APPEND content "    {\"${name}\",\n     {\"${escaped}\",\n      ${bytes}}},\n")
endforeach()
string(APPEND content "  };\n  return files;\n}\n\n}  // namespace kelpie\n")
file(WRITE ${OUTPUT} "${content}")
