// A key-value store within one process: values that devices push, sum and pull.
//
//   LocalStore store(AllOps(), {});
//   PENSTOCK_RETURN_IF_ERROR(store.Init("w", value));
//   PENSTOCK_ASSIGN_OR_RETURN(KeyOptimizer sgd, MakeOptimizer("sgd", {{"learning_rate", 0.1}}));
//   store.SetOptimizer(sgd);
//   PENSTOCK_RETURN_IF_ERROR(store.Push("w", std::vector<Tensor>{first_device, second_device}));
//   PENSTOCK_RETURN_IF_ERROR(store.Pull("w", out));
//
// A push adds the values of all devices. Then the optimizer updates the key, or, without one, the sum
// replaces its value. Values are copied: what was pushed or pulled may be changed afterwards. f16 keys are
// summed, updated and kept in f32.
//
// Blocking. Not thread-safe. kInvalidArgument: E-kv-key (no value yet), E-kv-key-again, E-kv-value (another
// shape or type), E-kv-rows (a row that the key does not have, or dense values for a key of rows); errors of
// UpdateProgram.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/kvstore/cast.h"
#include "executor/kvstore/optimizer.h"
#include "executor/kvstore/states_file.h"
#include "executor/schedule/executor.h"
#include "framework/base/status.h"
#include "framework/op/op_registry.h"
#include "framework/tensor/scope.h"
#include "framework/tensor/variable.h"
#include "framework/text/compression.h"

namespace penstock::kvstore {

class LocalStore {
 public:
  struct Options {
    SumOrder order = SumOrder::kInFours;
  };
  LocalStore(const OpRegistry& ops, const Options& options);
  ~LocalStore();

  Status Init(std::string_view key, const Tensor& value);
  // A table of the height of `value`; rows that it does not list are zero.
  Status InitRows(std::string_view key, const SelectedRows& value, const Shape& shape);

  // One value for each device. Floats of other types are converted.
  Status Push(std::string_view key, std::span<const Tensor> values);
  // A dense key may be pushed by rows, too: others have a gradient of 0.
  Status PushRows(std::string_view key, std::span<const SelectedRows> values);
  // The sum of the values and nothing else, for an update by the caller, which then assigns the result.
  Result<Tensor> Merge(std::string_view key, std::span<const Tensor> values);
  Result<SelectedRows> MergeRows(std::string_view key, std::span<const SelectedRows> values);
  Status Assign(std::string_view key, const Tensor& value);

  // `out` has the key's shape; its elements are converted to out's type.
  Status Pull(std::string_view key, Tensor& out) const;
  // The rows `ids`, in ascending order, each once, in the key's type.
  Result<SelectedRows> PullRows(std::string_view key, std::span<const std::int64_t> ids) const;

  struct Facts {
    DType dtype = DType::kFp32;
    Shape shape;
    bool rows = false;
  };
  std::vector<std::string> Keys() const;
  Result<Facts> FactsOf(std::string_view key) const;

  // States and counts of updates start anew. nullopt: none.
  void SetOptimizer(std::optional<KeyOptimizer> optimizer);
  // Other numbers for the same optimizer: states and counts stay.
  // kFailedPrecondition E-kv-no-optimizer: none is set, or one of another name or with other states.
  Status ChangeOptimizer(KeyOptimizer optimizer);
  const std::optional<KeyOptimizer>& optimizer() const { return optimizer_; }
  // Compresses what each device pushes, with a residual for each key and device, from now on.
  // kInvalidArgument E-compression-value. Later pushes: kFailedPrecondition E-kv-compression, of a key that
  // is not of f32, or by rows; E-compression-finite, of NaN or infinity, which MXNet sends as 0 and as the
  // threshold. Then no residual changes.
  Status SetCompression(float threshold);

  // The states of all keys, and, with `with_optimizer`, the optimizer and the counts of updates.
  // kFailedPrecondition E-kv-no-optimizer.
  Result<SavedStates> States(bool with_optimizer) const;
  // Uses these states, and the optimizer among them. Without one, counts start anew. A key that is not known
  // yet gets its states at its first update; E-kv-states if they do not fit it.
  Status SetStates(SavedStates states);

 private:
  struct Entry;
  Result<Entry*> Find(std::string_view key);
  Result<const Entry*> Find(std::string_view key) const;
  Status AddEntry(std::string_view key, const Facts& facts, Tensor value);
  Result<std::vector<Tensor>> Compressed(const std::string& key, Entry& entry,
                                         std::span<const Tensor> values);
  Result<SelectedRows> SumRows(std::string_view key, std::span<const SelectedRows> values) const;
  Result<Tensor> Sum(const std::string& key, Entry& entry, std::span<const Tensor> values);
  Status Update(const std::string& key, Entry& entry, Variable gradient, bool by_rows);
  Result<const KeyUpdate*> PrepareUpdate(const std::string& key, Entry& entry, bool by_rows);
  Status TakeStates(const std::string& key, Entry& entry, const KeyUpdate& update);
  void ForgetUpdates();
  std::int64_t LargestCount() const;

  const OpRegistry& ops_;
  const Options options_;
  std::optional<KeyOptimizer> optimizer_;
  std::optional<Compression> compression_;
  std::unique_ptr<exec::Executor> executor_;  // made by the first update; outlives its prepared blocks
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> entries_;
  std::map<std::string, std::shared_ptr<const KeyUpdate>> updates_;  // by what they depend on
  std::map<std::string, SavedStates::Key, std::less<>> loaded_;      // of keys without an update since
};

}  // namespace penstock::kvstore
