// What a sample tells of places that are visited again, where it looks at a window or at two parts of it.
#include "runtime/interp/sampled_window.h"

#include <gtest/gtest.h>

#include <functional>

#include "runtime/interp/visited_array.h"

namespace kelpie::runtime {
namespace {

constexpr int64_t kElements = 1 << 23;
constexpr double kWhole = 1e9, kFew = 100'000;  ///< elements for which there is time

/// Share of the granules gathered from an array of as many int64, at place(i), that were not visited shortly
/// before; of elements that load and store 16 bytes beside that.
double fresh(codegen::Streams streams, double affordable, const std::function<int64_t(int64_t)>& place) {
  constexpr double kBytes = 16;
  VisitedArray array(8.0 * kElements, 8, false);
  const ChosenElements chosen(kElements);
  double looked = 0;
  for (int64_t k = 0; k < ChosenElements::kGroups; ++k) {
    for (const auto& [begin, end] : chosen[k].runs) {
      array.beginGroup(begin, end);
      for (int64_t i = begin; i < end; ++i) array.insert(place(i));
      array.endGroup(false);
      looked += static_cast<double>(end - begin);
    }
  }
  SampledWindow window(kElements, streams, kBytes);
  window.begin(affordable, array.gatheredInGroups() / looked);
  int64_t inWindow = 0;
  const auto end = [&] {
    const SampledWindow::End ended = window.end(inWindow, array.gatheredLately());
    if (ended == SampledWindow::End::Nothing) return;
    if (ended == SampledWindow::End::FirstPart) array.endPart();
    if (ended == SampledWindow::End::Window) array.endWindow(window.parts());
    inWindow = 0;
  };
  while (!window.isDone()) {
    const bool over = window.isOver(inWindow, array.gatheredInWindow());
    const auto run = over ? std::nullopt : window.next(chosen);
    if (!run) {
      if (!over && !window.isSplit()) break;
      end();
      continue;
    }
    array.beginInWindow(run->first, run->second);
    for (int64_t i = run->first; i < run->second; ++i) array.insertInWindow(place(i));
    array.endInWindow();
    inWindow += run->second - run->first;
  }
  if (window.isInFirst()) array.endWindow(window.parts());
  return array.fresh(false, looked, kElements);
}

int64_t scattered(int64_t i) {
  const int64_t h = (i * 2654435769) & 0xffffffff;
  return h ^ h >> 13;
}

TEST(SampledWindow, SeesThatAPartOfATableIsAllThereIs) {
  const auto inPart = [](int64_t i) { return scattered(i) % 80'000; };
  for (const double affordable : {kWhole, kFew}) {
    EXPECT_LT(fresh({}, affordable, inPart), 0.01);
    EXPECT_LT(fresh({3168, 2}, affordable, inPart), 0.01);
  }
}

/// Neighbouring streams come to the same places, each of which no other one comes to.
TEST(SampledWindow, SeesWhatStreamsVisitAgain) {
  const auto nearby = [](int64_t i) { return i / 8 + scattered(i) % 512; };
  const double whole = fresh({3168, 1}, kWhole, nearby);
  EXPECT_LT(whole, 0.1);
  EXPECT_NEAR(fresh({3168, 1}, kFew, nearby), whole, 0.1);
}

TEST(SampledWindow, SeesThatPlacesDoNotComeBackSoon) {
  const auto anywhere = [](int64_t i) { return scattered(i) % kElements; };
  for (const codegen::Streams streams : {codegen::Streams{}, codegen::Streams{3168, 2}}) {
    const double whole = fresh(streams, kWhole, anywhere);
    EXPECT_GT(whole, 0.5);
    EXPECT_NEAR(fresh(streams, kFew, anywhere), whole, 0.4);
  }
  const auto inOrder = [](int64_t i) { return i; };
  EXPECT_NEAR(fresh({}, kWhole, inOrder), 1, 0.05) << "of granules, which groups share";
  EXPECT_NEAR(fresh({}, kFew, inOrder), 1, 0.05);
}

}  // namespace
}  // namespace kelpie::runtime
