#include "frontend/text.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace kelpie {

size_t editDistance(std::string_view a, std::string_view b, size_t limit) {
  const size_t tooMany = limit + 1;
  if (a.size() > b.size() + limit || b.size() > a.size() + limit) return tooMany;
  // Row i has the distances of the first i letters of `a` from beginnings of `b`. What is further than
  // `limit` from the diagonal is too many; of a row only cells beside the diagonal, and one further, are read
  // or written.
  std::vector<size_t> before(b.size() + 2, tooMany), last = before, row = before;
  for (size_t j = 0; j <= std::min(limit, b.size()); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    const size_t first = i > limit ? i - limit : 0, end = std::min(i + limit, b.size());
    if (first > 0) row[first - 1] = tooMany;
    for (size_t j = first; j <= end; ++j) {
      if (j == 0) {
        row[0] = i;
        continue;
      }
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]), tooMany});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    row[end + 1] = tooMany;
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace kelpie
