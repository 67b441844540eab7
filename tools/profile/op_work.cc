#include "tools/profile/op_work.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/graph/row_chain.h"
#include "framework/base/strings.h"
#include "framework/op/op_def.h"

namespace penstock::profile {
namespace {

constexpr std::string_view kGradOp = "_grad", kGradSlot = "@GRAD";

// How many operations the forward op takes.
enum class Rule {
  kProduct,    // of matrices that `left` and `right` are flattened to
  kBatches,    // of matrices in the last two dimensions
  kWindow,     // each element of `result`: a filter `right`, of which the first extent counts
  kScattered,  // each element of `left`: a filter `right`
  kEachRow,    // each row of `left`: all of `right`
};
struct Products {
  std::string_view type;
  Rule rule;
  std::string_view left, right, result;
};
constexpr std::array<Products, 13> kProducts = {{
    {"mul", Rule::kProduct, "X", "Y", "Out"},
    {"fc", Rule::kProduct, "Input", "W", "Out"},
    {"matmul", Rule::kBatches, "X", "Y", "Out"},
    {"conv2d", Rule::kWindow, "Input", "Filter", "Output"},
    {"depthwise_conv2d", Rule::kWindow, "Input", "Filter", "Output"},
    {"conv3d", Rule::kWindow, "Input", "Filter", "Output"},
    {"sequence_conv", Rule::kEachRow, "X", "Filter", "Out"},
    {"conv2d_transpose", Rule::kScattered, "Input", "Filter", "Output"},
    {"depthwise_conv2d_transpose", Rule::kScattered, "Input", "Filter", "Output"},
    {"conv3d_transpose", Rule::kScattered, "Input", "Filter", "Output"},
    {"lstm", Rule::kEachRow, "Input", "Weight", "Hidden"},
    {"gru", Rule::kEachRow, "Input", "Weight", "Hidden"},
    {"gru_unit", Rule::kEachRow, "Input", "Weight", "Hidden"},
}};

// Inputs of which only the rows are read that other inputs name, as many as the op's rows: type, table, rows.
constexpr std::array<std::array<std::string_view, 3>, 5> kTables = {{
    {"lookup_table", "W", "Out"},
    {"lookup_table_v2", "W", "Out"},
    {"gather", "X", "Out"},
    {"lookup_table_grad", "W", "Out@GRAD"},
    {"lookup_table_v2_grad", "W", "Out@GRAD"},
}};

double BytesOf(const TensorDesc& info) {
  return static_cast<double>(info.shape.Count()) * static_cast<double>(SizeOf(info.dtype));
}
double CountOf(const TensorDesc& info) { return static_cast<double>(info.shape.Count()); }

// The arguments of an instruction with their types.
class Arguments {
 public:
  Arguments(const exec::Specialisation& plan, std::size_t i) : instruction_(plan.block->instructions[i]) {
    for (const exec::InputSlot& input : plan.InputsOf(i)) inputs_.emplace(input.slot, &plan.type(input.type));
    for (const exec::OutputSlot& output : plan.OutputsOf(i))
      outputs_.emplace(output.slot, &plan.type(output.type));
  }
  const Op& op() const { return *instruction_.op; }
  const OpDef& def() const { return *instruction_.def; }
  const exec::RowChain& chain() const { return *instruction_.chain; }

  // Null: it is absent, or not a tensor of known extents.
  const TensorDesc* Input(std::string_view name) const {
    return Named(op().inputs(), name, instruction_.inputs, inputs_);
  }
  const TensorDesc* Output(std::string_view name) const {
    return Named(op().outputs(), name, instruction_.outputs, outputs_);
  }
  // Calls visit(slot of the op, type); returns false once an argument's type is not known.
  template <typename Visit>
  bool EachInput(const Visit& visit) const {
    return Each(op().inputs(), instruction_.inputs, inputs_, visit);
  }
  template <typename Visit>
  bool EachOutput(const Visit& visit) const {
    return Each(op().outputs(), instruction_.outputs, outputs_, visit);
  }

 private:
  using Types = std::map<int, const TensorDesc*>;

  static const TensorDesc* TypeIn(const Types& types, int slot) {
    const auto found = types.find(slot);
    return found != types.end() && exec::IsKnownTensor(*found->second) ? found->second : nullptr;
  }
  static const TensorDesc* Named(const std::vector<Slot>& slots, std::string_view name,
                                 const std::vector<std::vector<int>>& arguments, const Types& types) {
    for (std::size_t k = 0; k < slots.size(); ++k) {
      if (slots[k].name.str() == name && !arguments[k].empty()) return TypeIn(types, arguments[k][0]);
    }
    return nullptr;
  }
  template <typename Visit>
  static bool Each(const std::vector<Slot>& slots, const std::vector<std::vector<int>>& arguments,
                   const Types& types, const Visit& visit) {
    for (std::size_t k = 0; k < slots.size(); ++k) {
      for (const int slot : arguments[k]) {
        if (slot < 0) continue;
        const TensorDesc* type = TypeIn(types, slot);
        if (type == nullptr) return false;
        visit(slots[k].name.str(), *type);
      }
    }
    return true;
  }

  const exec::Instruction& instruction_;
  Types inputs_, outputs_;
};

std::optional<double> ProductFlops(const Products& products, const Arguments& arguments, bool gradient) {
  const TensorDesc* left = arguments.Input(products.left);
  const TensorDesc* right = arguments.Input(products.right);
  const TensorDesc* result =
      gradient ? arguments.Input(StrCat(products.result, kGradSlot)) : arguments.Output(products.result);
  if (left == nullptr || right == nullptr || left->shape.rank() == 0 || right->shape.rank() == 0)
    return std::nullopt;
  const Shape& l = left->shape;
  const auto filters = static_cast<double>(std::max<Dim>(1, right->shape[0]));
  switch (products.rule) {
    case Rule::kProduct: {
      const auto rows_to =
          arguments.op().GetOr<std::int32_t>(products.type == "fc" ? "in_num_col_dims" : "x_num_col_dims", 1);
      const auto rows = static_cast<double>(l.Product(0, std::min<int>(rows_to, l.rank())));
      return 2 * rows * CountOf(*right);
    }
    case Rule::kBatches: {
      if (result == nullptr) return std::nullopt;
      const bool transposed = arguments.op().GetOr<bool>("transpose_X", false);
      return 2 * CountOf(*result) *
             static_cast<double>(l[transposed && l.rank() > 1 ? l.rank() - 2 : l.rank() - 1]);
    }
    case Rule::kWindow:
      if (result == nullptr) return std::nullopt;
      return 2 * CountOf(*result) * CountOf(*right) / filters;
    case Rule::kScattered:
      return 2 * CountOf(*left) * CountOf(*right) / filters;
    case Rule::kEachRow:
      return 2 * static_cast<double>(l[0]) * CountOf(*right);
  }
  return std::nullopt;
}

std::optional<double> FlopsOf(const Arguments& arguments) {
  const std::string& type = arguments.op().type();
  for (const Products& products : kProducts) {
    const bool gradient = type == StrCat(products.type, kGradOp);
    if (!gradient && type != products.type) continue;
    const std::optional<double> forward = ProductFlops(products, arguments, gradient);
    if (!forward || !gradient) return forward;
    const auto is_computed = [&](std::string_view of) {
      return !arguments.op().Output(StrCat(of, kGradSlot)).empty() &&
             arguments.op().OutputName(StrCat(of, kGradSlot)) != kEmptyVarName;
    };
    return *forward * (is_computed(products.left) + is_computed(products.right));
  }
  if (!arguments.def().keeps_layout()) return std::nullopt;
  double most = 0;
  const bool known = arguments.EachOutput(
      [&](const std::string&, const TensorDesc& info) { most = std::max(most, CountOf(info)); });
  return known ? std::optional(most) : std::nullopt;
}

// Of the elementwise ops that an instruction runs by rows.
std::optional<double> FlopsOfChain(const Arguments& arguments) {
  std::vector<TensorDesc> read;
  if (!arguments.EachInput([&](const std::string&, const TensorDesc& info) { read.push_back(info); }))
    return std::nullopt;
  const exec::RowChain& chain = arguments.chain();
  const Result<exec::ChainTypes> types = exec::TypesOfChain(chain, std::move(read));
  if (!types.ok()) return std::nullopt;
  double flops = 0;
  for (const exec::Instruction& member : chain.block.instructions) {
    double most = 0;
    exec::EachSlot(member.outputs, [&](int slot) {
      most = std::max(most, CountOf(types->types[static_cast<std::size_t>(slot)]));
    });
    flops += most;
  }
  return flops;
}

std::optional<double> BytesOf(const Arguments& arguments) {
  std::string_view table, rows;
  for (const auto& [type, whole, read] : kTables) {
    if (arguments.op().type() == type) table = whole, rows = read;
  }
  double bytes = 0;
  const auto add = [&](const std::string& name, const TensorDesc& info) {
    const bool is_table = !table.empty() && name == table;
    const TensorDesc* read = nullptr;
    if (is_table) read = EndsWith(rows, kGradSlot) ? arguments.Input(rows) : arguments.Output(rows);
    bytes += read != nullptr ? BytesOf(*read) : BytesOf(info);
  };
  if (!arguments.EachInput(add) || !arguments.EachOutput(add)) return std::nullopt;
  return bytes;
}

}  // namespace

OpWork WorkOf(const exec::Specialisation& plan, std::size_t instruction) {
  if (!plan.steps[instruction].has_kernel || plan.block->instructions[instruction].starts_blocks) return {};
  const Arguments arguments(plan, instruction);
  const bool is_chain = plan.block->instructions[instruction].chain != nullptr;
  return {is_chain ? FlopsOfChain(arguments) : FlopsOf(arguments), BytesOf(arguments)};
}

}  // namespace penstock::profile
