#include "framework/runtime/host_functions.h"

#include <deque>
#include <mutex>
#include <utility>

namespace penstock {
namespace {

struct FunctionRegistry {
  std::mutex mutex;
  std::deque<HostFunction> functions;  // a deque, so that addresses stay valid
};

// Never destroyed: the functions belong to the host language, whose runtime ends before this library does.
FunctionRegistry& AllFunctions() {
  static FunctionRegistry& registry = *new FunctionRegistry();
  return registry;
}

}  // namespace

int HostFunctions::Add(HostFunction function) {
  FunctionRegistry& all = AllFunctions();
  const std::lock_guard lock(all.mutex);
  all.functions.push_back(std::move(function));
  return static_cast<int>(all.functions.size()) - 1;
}

const HostFunction* HostFunctions::Find(int number) {
  FunctionRegistry& all = AllFunctions();
  const std::lock_guard lock(all.mutex);
  const bool known = number >= 0 && static_cast<std::size_t>(number) < all.functions.size();
  return known ? &all.functions[static_cast<std::size_t>(number)] : nullptr;
}

int HostFunctions::count() {
  FunctionRegistry& all = AllFunctions();
  const std::lock_guard lock(all.mutex);
  return static_cast<int>(all.functions.size());
}

}  // namespace penstock
