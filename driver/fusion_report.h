// The report of fusion (fusion/fuse.h) for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "frontend/source_manager.h"
#include "fusion/fuse.h"

namespace kelpie::driver {

struct FormReport {
  std::string place, name;  ///< "file:line:column", and what the form binds
  fusion::FusionReport report;
};

std::string fusionReportAsText(const std::vector<FormReport>& forms, const SourceManager& sources);
/// One object: {"forms": [...]}; the members are named as in fusion/fuse.h.
std::string fusionReportAsJson(const std::vector<FormReport>& forms, const SourceManager& sources);

}  // namespace kelpie::driver
