// Names to variables. A scope may have a parent, which is asked for names it does not hold itself.
//
//   Scope scope;
//   scope.FindOrCreate("w")->As<Tensor>() = Tensor(DType::kFp32, {13, 1});
//
// The address of a Variable is stable until it is erased. Thread-safe for concurrent look-ups and creations;
// what a variable holds is guarded by whoever schedules its readers and writers.
#pragma once

#include <atomic>
#include <cstdint>
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
  explicit Scope(Scope* parent = nullptr);
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  Variable* FindOrCreate(std::string_view name);  // in this scope; the parent is not asked
  Variable* Find(std::string_view name) const;    // here, then in the parents; null if nowhere
  Variable* FindLocal(std::string_view name) const;
  // Makes `name` here mean a variable that somebody else owns (a view of rows, say).
  void Bind(std::string_view name, std::shared_ptr<Variable> variable);
  bool Erase(std::string_view name);
  std::vector<std::string> Names() const;  // of this scope, sorted
  Scope* parent() const { return parent_; }
  // A number that no other state of any scope has had: it changes whenever a name here or in a parent is
  // created, bound or erased. A cache of addresses is valid while (address of the scope, generation) is what
  // it was. Takes no lock.
  std::uint64_t generation() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Variable>, std::less<>> variables_;
  Scope* parent_ = nullptr;
  std::atomic<std::uint64_t> generation_;
};

}  // namespace penstock
