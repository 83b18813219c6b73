#include "fusion/common_values.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/fusion/read_program.h"

namespace kelpie::fusion {
namespace {

/// `count` maps of one space, of which `pull` tells what number k computes; their text afterwards.
std::string changed(int count, const std::function<std::string(const std::string& k)>& pull,
                    const std::string& type = "bool") {
  std::string text =
      "site @1 = \"index\" 1:1..2\n"
      "function f(n: int64, m: int64, offsets: [int64; n + 1], xs: [int64; n], ys: [int64; m]) {\n";
  for (int k = 0; k < count; ++k) {
    const std::string number = std::to_string(k);
    text += "  kernel k" + number + " {\n    let r" + number + ": [" + type +
            "; m] = MAP seg(offsets, n, m) { i, s, p => " + pull(number) + " }\n    return r" + number +
            "\n  }\n";
  }
  lcu::Program program = read(text + "}\nentry main: () {\n}\n");
  if (program.functions.empty()) return "";
  const size_t stored = storeCommonValues(program).size();
  EXPECT_EQ(lcu::verify(program, false), std::vector<std::string>{});
  std::string maps = std::to_string(stored) + "\n";
  for (const lcu::Stmt& stmt : program.functions[0].body.stmts) {
    const std::string kernel = lcu::toString(std::get<lcu::Launch>(stmt.node).kernel, program);
    const size_t begin = kernel.find("=> ") + 3;
    maps += kernel.substr(begin, kernel.find(" }", begin) - begin) + "\n";
  }
  return maps;
}

std::string lines(int count, const std::function<std::string(const std::string& k)>& line) {
  std::string all;
  for (int k = 0; k < count; ++k) all += line(std::to_string(k)) + "\n";
  return all;
}

TEST(CommonValues, AreStoredWhereManyMapsNeedTheirSegmentForThem) {
  EXPECT_EQ(changed(20,
                    [](const std::string& k) {
                      return "if xs[s] / 10 + p > 3 then xs[s] / 10 + p == " + k + " else ys[i] > 0";
                    }),
            "1\nxs[s] / 10 + p\n" + lines(20, [](const std::string& k) {
              return "let t1 = value[i] in if t1 > 3 then t1 == " + k + " else ys[i] > 0";
            }));
}

/// Fewer than sixteen are not worth a column; what may fail, and what only branches compute, is not computed
/// elsewhere.
TEST(CommonValues, AreNotStoredOtherwise) {
  const auto stays = [](int count, const std::function<std::string(const std::string&)>& pull) {
    EXPECT_EQ(changed(count, pull).substr(0, 2), "0\n");
  };
  stays(15, [](const std::string& k) { return "xs[s] / 10 == " + k; });
  stays(20, [](const std::string& k) { return "check(p > 0, xs[s] / 10, 0, @1, p, p) == " + k; });
  stays(20, [](const std::string& k) { return "if ys[i] > 0 then xs[s] / 10 == " + k + " else false"; });
  stays(20, [](const std::string& k) { return "s == " + k + " or p == " + k; });
  stays(20, [](const std::string& k) { return "ys[i] / 10 == " + k; });
}

/// It is enough if one of them always computes it.
TEST(CommonValues, OfOneThatAlwaysComputesThem) {
  EXPECT_EQ(changed(17,
                    [](const std::string& k) {
                      return k == "9" ? "xs[s] / 10 == 9"
                                      : "if ys[i] > 0 then xs[s] / 10 == " + k + " else false";
                    })
                .substr(0, 2),
            "1\n");
}

}  // namespace
}  // namespace kelpie::fusion
