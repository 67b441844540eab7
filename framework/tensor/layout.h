// How the elements of a dense tensor lie in memory: plain row-major, or a blocked form that only the library
// that made it can read. A graph pass puts reorders where layouts meet; whatever leaves the executor is
// plain.
#pragma once

#include <memory>

namespace penstock {

class Layout {
 public:
  Layout() = default;  // plain
  explicit Layout(std::shared_ptr<const void> blocked) : blocked_(std::move(blocked)) {}
  bool IsPlain() const { return blocked_ == nullptr; }
  const std::shared_ptr<const void>& blocked() const { return blocked_; }  // the library's own descriptor

 private:
  std::shared_ptr<const void> blocked_;
};

}  // namespace penstock
