// The states of a store's optimizer in a file: text, then tensors as Fluid saves them (tensor/serialize.h).
//
//   penstock kv states 1
//   sgd {...}                # the optimizer's text, or "-"
//   2                        # keys, each: updates, states, name
//   12 1 w
//   12 1 "a key"
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/kvstore/optimizer.h"
#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace penstock::kvstore {

struct SavedStates {
  struct Key {
    std::int64_t count = 0;      // updates
    std::vector<Tensor> states;  // in the order of KeyUpdate::states
  };
  std::optional<KeyOptimizer> optimizer;
  std::map<std::string, Key, std::less<>> keys;

  std::string ToBytes() const;
  // `ops` as for ParseOptimizer. kDataLoss E-kv-states: the bytes are no such file.
  static Result<SavedStates> Parse(std::string_view bytes, const OpRegistry* ops = nullptr);
};

}  // namespace penstock::kvstore
