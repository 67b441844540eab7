// Every class of bad input into every op that computes with tensors: other ranks, extents and element types,
// no elements, indices and sizes out of range, divisors of zero, mismatched sequences, attributes out of
// range, missing slots. Each op runs or rejects the input, and none crashes the process.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "framework/op/tensor_desc.h"
#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

Tensor Filled(DType type, const Shape& shape, double value) {
  if (type != DType::kUInt8) return Ramp(type, shape, value, 0);
  Tensor mask(type, shape);
  std::ranges::fill(mask.Span<std::uint8_t>(), std::uint8_t{1});
  return mask;
}

// Other sequences for the rows of an input, by name, none of which match.
std::map<std::string, LoD> InsteadOfSequences(const Tensor& tensor) {
  const std::uint64_t rows = tensor.shape().rank() == 0 ? 1 : static_cast<std::uint64_t>(tensor.shape()[0]);
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max() / 2;
  std::map<std::string, LoD> others = {{"sequences beyond its rows", {{0, rows + 3}}},
                                       {"sequences of some of its rows", {{0, 1}}},
                                       {"sequences that begin late", {{1, rows}}},
                                       {"sequences that go back", {{0, rows, 1, rows}}},
                                       {"huge sequences", {{0, kHuge, rows}}},
                                       {"a level without sequences", {{}}},
                                       {"a level of no sequence", {{0}}},
                                       {"levels that do not meet", {{0, 7}, {0, rows}}}};
  const LoD& lod = tensor.lod();
  if (lod.empty()) return others;
  others["no sequences"] = {};
  others["another number of sequences"] = lod;
  others["another number of sequences"].back().push_back(rows);
  others["a level more"] = lod;
  others["a level more"].insert(others["a level more"].begin(), {0, lod.front().size() - 1});
  return others;
}

// Bad tensors in place of an input, by name.
std::map<std::string, Tensor> InsteadOf(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const bool is_float = IsFloat(tensor.dtype());
  std::map<std::string, Tensor> others;
  others["no extents"] = Filled(tensor.dtype(), Shape(), 1);
  others["one element"] = Filled(tensor.dtype(), {1}, 1);
  others["an extent more"] = Filled(tensor.dtype(), Concat(Shape{1}, shape), 1);
  others["no elements"] = Tensor(tensor.dtype(), shape.rank() == 0 ? Shape{0} : shape.WithRows(0));
  if (shape.rank() > 0) {
    Shape wider = shape, emptier = shape;
    wider.Set(shape.rank() - 1, shape[shape.rank() - 1] + 1);
    emptier.Set(shape.rank() - 1, 0);
    others["wider rows"] = Filled(tensor.dtype(), wider, 1);
    others["rows of nothing"] = Tensor(tensor.dtype(), emptier);
    others["more rows"] = Filled(tensor.dtype(), shape.WithRows(shape[0] + 1), 1);
  }
  others["another type"] = Filled(is_float ? DType::kInt64 : DType::kFp64, shape, 1);
  others["zeros"] = Filled(tensor.dtype(), shape, 0);
  if (is_float)
    others["no numbers"] = Filled(tensor.dtype(), shape, std::numeric_limits<double>::quiet_NaN());
  if (tensor.dtype() == DType::kInt64) {
    others["the least of all"] = tensor.Clone();
    std::ranges::fill(others["the least of all"].Span<std::int64_t>(),
                      std::numeric_limits<std::int64_t>::min());
  }
  for (const auto& [what, lod] : InsteadOfSequences(tensor)) {
    others[what] = tensor.Clone();
    others[what].set_lod(lod);
  }
  if (!is_float) {
    others["negative numbers"] = Filled(tensor.dtype(), shape, -1);
    others["the least numbers"] = Filled(tensor.dtype(), shape, std::numeric_limits<std::int32_t>::min());
    others["large numbers"] = Filled(tensor.dtype(), shape, std::numeric_limits<std::int32_t>::max());
  }
  return others;
}

void ExpectRunsOrRefuses(const Op& op, const Tensors& inputs) {
  for (const std::string& name : op.InputNames()) {
    if (!inputs.contains(name)) continue;
    for (const auto& [what, other] : InsteadOf(inputs.at(name))) {
      Tensors changed = inputs;
      changed[name] = other;
      const StatusCode code = RunOp(AllOps(), op, changed).status().code();
      EXPECT_TRUE(code == StatusCode::kOk || code == StatusCode::kInvalidArgument ||
                  code == StatusCode::kUnimplemented)
          << op.type() << " with " << name << " of " << what << ": "
          << RunOp(AllOps(), op, changed).status().ToString();
    }
  }
}

// Lists of another length, and lists in which one element or all elements are one of `values`.
template <typename T>
void AddInsteadOf(const std::vector<T>& list, std::initializer_list<T> values, std::vector<Attr>& others) {
  others.emplace_back(std::vector<T>());
  others.emplace_back(std::vector<T>(list.size() + 9, 1));
  for (const T value : values) {
    others.emplace_back(std::vector<T>(list.size(), value));
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::vector<T> changed = list;
      changed[i] = value;
      others.emplace_back(changed);
    }
  }
}

// Bad values in place of an attribute: out of range, of another length, of another kind.
std::vector<Attr> InsteadOf(const Attr& attr) {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kLeastLong = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kLargestLong = std::numeric_limits<std::int64_t>::max();
  std::vector<Attr> others = {std::vector<std::string>{"a"}};
  if (std::holds_alternative<std::int32_t>(attr)) {
    for (const std::int32_t value : {0, -1, 9, kLeast, kLargest}) others.emplace_back(value);
  } else if (std::holds_alternative<std::int64_t>(attr)) {
    for (const std::int64_t value :
         {std::int64_t{0}, std::int64_t{-1}, std::int64_t{9}, kLeastLong, kLargestLong})
      others.emplace_back(value);
  } else if (std::holds_alternative<float>(attr)) {
    for (const float value : {0.0f, -1.0f, 1e30f, std::numeric_limits<float>::quiet_NaN()})
      others.emplace_back(value);
  } else if (std::holds_alternative<std::string>(attr)) {
    others.emplace_back(std::string());
  } else if (const auto* list = std::get_if<std::vector<std::int32_t>>(&attr)) {
    AddInsteadOf(*list, {0, -1, 9, kLeast, kLargest}, others);
  } else if (const auto* longs = std::get_if<std::vector<std::int64_t>>(&attr)) {
    AddInsteadOf(*longs, {std::int64_t{0}, std::int64_t{-1}, std::int64_t{9}, kLeastLong, kLargestLong},
                 others);
  }
  return others;
}

// Whether an output would need more memory than a test may use; then only inference is tested.
bool AsksForMuch(const Op& op, const Tensors& inputs) {
  TensorDescs known;
  for (const auto& [name, tensor] : inputs) known[name] = DescOf(tensor);
  const Result<TensorDescs> outputs = InferOp(AllOps(), op, known);
  if (!outputs.ok()) return false;
  for (const auto& [name, info] : *outputs) {
    double elements = 1;
    for (const Dim extent : info.shape.dims()) elements *= static_cast<double>(std::max<Dim>(extent, 1));
    if (elements > 1 << 20) return true;
  }
  return false;
}

void ExpectRunsOrRefusesChanges(const Op& op, const Tensors& inputs) {
  const auto expect = [&inputs](const Op& changed, const std::string& how) {
    if (AsksForMuch(changed, inputs)) return;
    const StatusCode code = RunOp(AllOps(), changed, inputs).status().code();
    EXPECT_TRUE(code == StatusCode::kOk || code == StatusCode::kInvalidArgument ||
                code == StatusCode::kUnimplemented)
        << changed.type() << " " << how << ": " << RunOp(AllOps(), changed, inputs).status().ToString();
  };
  const OpDef& def = *AllOps().Find(op.type());
  for (const AttrDef& attr : def.attrs()) {
    const Attr* given = op.FindAttr(attr.name);
    if (given == nullptr && !attr.default_value) continue;
    for (const Attr& other : InsteadOf(given != nullptr ? *given : *attr.default_value)) {
      Op changed = op;
      expect(changed.Set(attr.name, other), StrCat("with ", attr.name, " = ", AttrToString(other)));
    }
    Op without = op;
    expect(without.RemoveAttr(attr.name), StrCat("without ", attr.name));
  }
  for (const Slot& slot : op.inputs()) {
    Op changed = op;
    expect(changed.RemoveInput(slot.name), StrCat("without ", slot.name));
  }
  // The executor checks all other outputs.
  for (const Slot& slot : op.outputs()) {
    if (!def.FindOutput(slot.name)->intermediate) continue;
    Op changed = op;
    expect(changed.AddOutput(slot.name, {}), StrCat("without ", slot.name));
  }
}

// Ops that do more than compute with tensors, and the tests of their bad inputs; kinds_test.cc also puts
// every kind into their slots.
const std::map<std::string, std::set<std::string>> kTriedElsewhere = {
    {"rows_test.cc, fill_rows_test.cc: selected rows",
     {"extract_rows", "fake_init", "get_tensor_from_selected_rows", "lookup_sparse_table",
      "merge_selected_rows", "split_selected_rows"}},
    {"tests/executor: blocks, arrays, rank tables",
     {"array_to_lod_tensor",
      "conditional_block",
      "conditional_block_grad",
      "lod_array_length",
      "lod_tensor_to_array",
      "max_sequence_len",
      "read_from_array",
      "recurrent",
      "recurrent_grad",
      "reorder_lod_tensor_by_rank",
      "reorder_lod_tensor_by_rank_grad",
      "select_input",
      "select_output",
      "shrink_rnn_memory",
      "shrink_rnn_memory_grad",
      "tensor_array_to_tensor",
      "tensor_array_to_tensor_grad",
      "while",
      "while_grad",
      "write_to_array"}},
    {"tests/python/test_beams.py: arrays of tokens", {"beam_search_decode"}},
    {"save_load_test.cc: files", {"load", "load_combine", "save", "save_combine"}},
    {"communication_test.cc, tests/dist: other processes",
     {"checkpoint_notify", "distributed_lookup_table", "fetch_barrier", "listen_and_serv", "prefetch", "recv",
      "send", "send_barrier"}},
    {"tests/executor/collective_ops_test.cc: ranks",
     {"allreduce",
      "broadcast",
      "c_allgather",
      "c_allreduce_adasum",
      "c_allreduce_max",
      "c_allreduce_min",
      "c_allreduce_prod",
      "c_allreduce_sum",
      "c_broadcast",
      "c_broadcast_grad",
      "c_sparse_allreduce_sum",
      "sync_batch_norm",
      "sync_batch_norm_grad",
      "c_comm_init",
      "c_comm_init_all",
      "c_gen_nccl_id",
      "c_reducescatter",
      "c_share_of_elements",
      "c_sync_calc_stream",
      "c_sync_comm_stream",
      "gen_nccl_id"}},
    {"tests/python: what the user's own code does",
     {"create_double_buffer_reader", "create_py_reader", "print", "py_func", "read"}},
    {"tests/executor: nothing is left of its variables", {"delete_var"}}};

// Each class of bad input is thus tested with each family of ops.
TEST(BadInputs, EveryOpIsCovered) {
  std::set<std::string> tried;
  ForEachOp([&tried](const Op& op, const Tensors& inputs) {
    tried.insert(op.type());
    const Status status = RunOp(AllOps(), op, inputs).status();
    EXPECT_TRUE(status.ok()) << op.type() << " must run before anything is changed: " << status.ToString();
  });
  for (const auto& [where, ops] : kTriedElsewhere) {
    for (const std::string& op : ops) EXPECT_TRUE(tried.insert(op).second) << op << " is tried here too";
  }
  for (const OpDef* def : AllOps().All()) {
    if (def->has_kernel(DeviceKind::kCpu)) {
      EXPECT_TRUE(tried.contains(def->type())) << def->type() << " meets no bad input";
    }
  }
}

TEST(BadInputs, AreRefusedOrRunWithoutACrash) { ForEachOp(ExpectRunsOrRefuses); }

TEST(BadAttributesAndMissingSlots, AreRefusedOrRunWithoutACrash) { ForEachOp(ExpectRunsOrRefusesChanges); }

}  // namespace
}  // namespace penstock::test
