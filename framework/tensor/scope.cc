#include "framework/tensor/scope.h"

#include <algorithm>

namespace penstock {
namespace {

// The counter is shared by all scopes, so a new scope at the address of a destroyed one has another
// generation.
std::uint64_t NextGeneration() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Scope::Scope(Scope* parent) : parent_(parent), generation_(NextGeneration()) {}

Variable* Scope::FindOrCreate(std::string_view name) {
  const std::lock_guard lock(mutex_);
  auto it = variables_.find(name);
  if (it == variables_.end()) {
    it = variables_.emplace(std::string(name), std::make_shared<Variable>()).first;
    generation_.store(NextGeneration(), std::memory_order_release);
  }
  return it->second.get();
}

Variable* Scope::Find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_) {
    if (Variable* variable = scope->FindLocal(name)) return variable;
  }
  return nullptr;
}

Variable* Scope::FindLocal(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto it = variables_.find(name);
  return it == variables_.end() ? nullptr : it->second.get();
}

void Scope::Bind(std::string_view name, std::shared_ptr<Variable> variable) {
  const std::lock_guard lock(mutex_);
  variables_.insert_or_assign(std::string(name), std::move(variable));
  generation_.store(NextGeneration(), std::memory_order_release);
}

bool Scope::Erase(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto it = variables_.find(name);
  if (it == variables_.end()) return false;
  variables_.erase(it);
  generation_.store(NextGeneration(), std::memory_order_release);
  return true;
}

std::vector<std::string> Scope::Names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, variable] : variables_) names.push_back(name);
  return names;
}

std::uint64_t Scope::generation() const {
  std::uint64_t newest = 0;
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_) {
    newest = std::max(newest, scope->generation_.load(std::memory_order_acquire));
  }
  return newest;
}

}  // namespace penstock
