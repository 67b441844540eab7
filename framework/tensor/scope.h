// Maps names to variables. A scope may have a parent, which is searched for names that it does not hold.
//
//   Scope scope;
//   scope.FindOrCreate("w")->As<Tensor>() = Tensor(DType::kFp32, {13, 1});
//
// The address of a Variable is stable until it is erased. Thread-safe for concurrent look-ups and creations;
// the scheduler of its readers and writers protects a variable's content.
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

  Variable* FindOrCreate(std::string_view name);  // in this scope only
  Variable* Find(std::string_view name) const;    // here, then in the parents; null if absent
  Variable* FindLocal(std::string_view name) const;
  // Binds `name` in this scope to a variable that someone else owns (a view of rows, say).
  void Bind(std::string_view name, std::shared_ptr<Variable> variable);
  bool Erase(std::string_view name);
  std::vector<std::string> Names() const;  // of this scope, sorted
  Scope* parent() const { return parent_; }
  // A number unique to this state of the scope: it changes whenever a name here or in a parent is created,
  // bound or erased, and no other scope ever has it. A cache of addresses is valid while the scope's address
  // and generation are unchanged. Takes no lock.
  std::uint64_t generation() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Variable>, std::less<>> variables_;
  Scope* parent_ = nullptr;
  std::atomic<std::uint64_t> generation_;
};

}  // namespace penstock
