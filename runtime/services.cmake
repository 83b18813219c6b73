# The services alone: what the reference interpreter needs of the runtime.
kelpie_library(services SOURCES
  matrix_market.cpp
  object_text.cpp
  output_file.cpp
  random_stream.cpp
  services.cpp
  subprocess.cpp
  unique_name.cpp
  LINK kelpie_ir)
