// The registry of diagnostic ids, the error index and the sources agree.
#include "frontend/diagnostic_ids.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "frontend/session.h"

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

TEST(DiagnosticIds, HaveExamplesThatCauseThem) {
  const std::string index = read(std::filesystem::path(KELPIE_SOURCE_DIR) / "docs/errors.md");
  const std::regex begin("(### (K[0-9]{4}) .*|#.*)");
  std::map<std::string, std::string> examples;
  std::string id;
  std::istringstream lines(index);
  for (std::string line; std::getline(lines, line);) {
    std::smatch heading;
    if (std::regex_match(line, heading, begin)) id = heading[2];
    if (!id.empty() && line.starts_with("    ")) examples[id] += line.substr(4) + "\n";
  }
  EXPECT_GT(examples.size(), 25u);
  for (const auto& [expected, text] : examples) {
    if (text.find("...") != std::string::npos) continue;  // stands for what is left out
    SourceManager sources;
    Session session(sources, {});
    std::set<std::string> found;
    for (const FormResult& form : session.processFile(sources.add("example.nesl", text)))
      for (const Diagnostic& diagnostic : form.diagnostics) found.insert(diagnostic.id);
    EXPECT_TRUE(found.contains(expected)) << expected << " is not caused by\n" << text;
  }
}

}  // namespace
}  // namespace kelpie
