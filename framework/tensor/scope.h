// Names to variables. A scope may have a parent, which is asked for names it does not hold itself.
//
//   Scope scope;
//   scope.FindOrCreate("w")->As<Tensor>() = Tensor(DType::kFp32, {13, 1});
//
// The address of a Variable is stable until it is erased. Thread-safe for concurrent look-ups and creations; what a
// variable holds is guarded by whoever schedules its readers and writers.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor/variable.h"

namespace penstock {

class Scope {
 public:
  Scope() = default;
  explicit Scope(Scope* parent) : parent_(parent) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  Variable* FindOrCreate(std::string_view name);   // in this scope; the parent is not asked
  Variable* Find(std::string_view name) const;     // here, then in the parents; null if nowhere
  Variable* FindLocal(std::string_view name) const;
  // Makes `name` here mean a variable that somebody else owns (a view of rows, say).
  void Bind(std::string_view name, std::shared_ptr<Variable> variable);
  bool Erase(std::string_view name);
  std::vector<std::string> Names() const;          // of this scope, sorted
  Scope* parent() const { return parent_; }
  // Grows whenever a name is bound to another Variable or erased; a cache of addresses checks it.
  std::uint64_t generation() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Variable>, std::less<>> variables_;
  Scope* parent_ = nullptr;
  std::uint64_t generation_ = 0;
};

}  // namespace penstock
