# The reference interpreter and the printer of values.
target_sources(kelpie_frontend PRIVATE
  effects.cpp
  instance_vector.cpp
  interpreter.cpp
  interpreter_primitives.cpp
  value_printer.cpp)
