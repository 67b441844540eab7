// What a LocalStore keeps for a key.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/kvstore/local_store.h"

namespace penstock::kvstore {

inline constexpr char kVariable[] = "w";  // of each key's scope: its value

struct LocalStore::Entry {
  Facts facts;
  Scope scope;  // the value, and the states and numbers of the update
  std::int64_t count = 0;
  std::vector<std::string> states = {};              // once started: their variables
  bool started = false;                              // the scope has the states
  std::shared_ptr<const KeyUpdate> updates[2] = {};  // by dense gradients, and by rows
  std::unique_ptr<PreparedBlock> blocks[2] = {};     // of these updates
  std::vector<Tensor> residuals = {};                // of each device, while pushes are compressed

  Tensor& value() { return scope.FindLocal(kVariable)->As<Tensor>(); }
  const Tensor& value() const { return *scope.FindLocal(kVariable)->If<Tensor>(); }
};

}  // namespace penstock::kvstore
