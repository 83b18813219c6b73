// The registry of diagnostic ids, the error index and the sources agree.
#include "frontend/diagnostic_ids.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace kelpie {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(DiagnosticIds, AreDocumentedWithTheirTitles) {
  const std::string index = read(std::filesystem::path(KELPIE_SOURCE_DIR) / "docs/errors.md");
  std::set<std::string> registered, documented;
  for (const DiagnosticTitle& entry : kDiagnosticTitles) {
    EXPECT_TRUE(registered.insert(entry.id).second) << entry.id << " is registered twice";
    const std::string heading = std::string("### ") + entry.id + " " + entry.title + "\n";
    EXPECT_NE(index.find(heading), std::string::npos) << "docs/errors.md lacks \"" << heading << "\"";
  }
  const std::regex heading("### (K[0-9]{4}) ");
  for (std::sregex_iterator i(index.begin(), index.end(), heading), end; i != end; ++i)
    documented.insert((*i)[1]);
  EXPECT_EQ(documented, registered);
}

TEST(DiagnosticIds, AreRegisteredWhereUsed) {
  std::set<std::string> registered;
  for (const DiagnosticTitle& entry : kDiagnosticTitles) registered.insert(entry.id);
  const std::regex use("\"(K0[0-9]{3})\"");
  std::set<std::string> used;
  for (const char* folder : {"frontend", "driver", "flatten", "runtime"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(KELPIE_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".cpp") continue;
      const std::string text = read(entry.path());
      for (std::sregex_iterator i(text.begin(), text.end(), use), end; i != end; ++i) {
        used.insert((*i)[1]);
        EXPECT_TRUE(registered.contains((*i)[1])) << (*i)[1] << " in " << entry.path();
      }
    }
  for (const std::string& id : registered) EXPECT_TRUE(used.contains(id)) << id << " is never reported";
}

}  // namespace
}  // namespace kelpie
