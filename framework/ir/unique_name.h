// Fluid's unique names ("fc_0", "fc_1", ...): each key has its own counter. append_backward, clipping and the
// optimizers use them; the transpiler never does.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace penstock {

class UniqueNames {
 public:
  explicit UniqueNames(std::string prefix = "") : prefix_(std::move(prefix)) {}
  std::string Generate(std::string_view key);  // prefix + key + "_" + n
  int Peek(std::string_view key) const;        // the next n
  void Set(std::string_view key, int next);
  const std::string& prefix() const { return prefix_; }

 private:
  std::string prefix_;
  std::map<std::string, int, std::less<>> next_;
};

}  // namespace penstock
