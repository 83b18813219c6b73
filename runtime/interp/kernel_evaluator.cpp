#include "runtime/interp/kernel_evaluator.h"

#include "runtime/interp/launch_evaluation.h"

namespace kelpie::runtime {

KernelCode::KernelCode(const KernelEntry& entry) {
  for (const Soac& soac : entry.kernel->bindings) {
    using Mode = ExpressionCode::Mode;
    Binding b{ExpressionCode(codegen::eagerThunks(soac), Mode::Kernel),
              ExpressionCode(codegen::lateThunks(soac), Mode::Kernel),
              ExpressionCode(soac.combine.result, Mode::Kernel), codegen::componentOperations(soac.combine),
              codegen::laneFolds(soac.combine)};
    b.anyTogether = std::any_of(b.lanewise.begin(), b.lanewise.end(), [](const auto& op) { return !op; });
    b.anySerial = std::any_of(b.lanes.begin(), b.lanes.end(), [](const auto& fold) { return !fold; });
    bindings_.push_back(std::move(b));
  }
}
KernelCode::~KernelCode() = default;
KernelCode::KernelCode(KernelCode&&) noexcept = default;

double secondsOfElement(const lcu::Kernel& kernel) {
  constexpr double kSecondsPerNode = 5e-9, kSecondsPerElement = 2e-8;
  constexpr double kTurns = 100;
  double seconds = 0;
  for (const lcu::Soac& s : kernel.bindings) {
    double nodes = 0;
    auto roots = codegen::thunksOf(s);
    roots.insert(roots.end(), s.combine.result.begin(), s.combine.result.end());
    lcu::forEachNode(roots, [&](lcu::ExprRef e) { nodes += lcu::isUnbounded(e) ? kTurns : 1; });
    seconds += kSecondsPerElement + kSecondsPerNode * nodes;
  }
  return seconds;
}

std::optional<DeviceError> evaluateKernel(const KernelCode& code, const LaunchRequest& request,
                                          LaunchWork& work, std::optional<Deadline> deadline,
                                          Postpone postpone) {
  return LaunchEvaluation(code, request, work, deadline, std::move(postpone)).run();
}

}  // namespace kelpie::runtime
