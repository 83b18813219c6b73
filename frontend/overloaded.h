// std::visit with one lambda for each alternative.
#pragma once

namespace kelpie {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace kelpie
