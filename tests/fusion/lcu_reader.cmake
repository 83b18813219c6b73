kelpie_test(lcu_reader SOURCES lcu_reader_test.cpp LINK kelpie_lcu_reader)
