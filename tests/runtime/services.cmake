kelpie_test(services SOURCES services_test.cpp LINK kelpie_services)
