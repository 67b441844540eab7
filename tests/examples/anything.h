// What the examples of headers take for granted (names.tsv). They are compiled and never run.
#pragma once

#include <chrono>
#include <type_traits>

namespace penstock {

// Converts to any type.
struct Anything {
  template <typename T>
  operator T&() const {  // NOLINT(google-explicit-constructor)
    static char nothing;
    return reinterpret_cast<T&>(nothing);
  }
};

template <typename T>
T& Some() {
  static Anything anything;
  if constexpr (std::is_same_v<T, Anything>) {
    return anything;
  } else {
    return static_cast<T&>(anything);
  }
}

// What an example returns, if it does.
struct Returned {
  Returned() = default;
  template <typename T>
  Returned(T&&) {}  // NOLINT
};

}  // namespace penstock
