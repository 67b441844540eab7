// The only declaration of an op: schema, documentation, shape inference, gradient, kernels, and the facts
// that the transpiler and the executor need. No other code knows an op's slots.
//
//   void RegisterSquare(OpRegistry& ops) {
//     ops.Add("square")
//         .Doc("The square of each element.", kDoc)
//         .Input("X", "any shape", Floats())
//         .Output("Out", "X * X", SameTypeAs("X"))
//         .InferShape(SameShape("X", "Out"))
//         .Kernel<Cpu, SquareKernel, float, double>()
//         .Grad({.reads = {"X"}, .yields = {"X"}})
//         .GradKernel<Cpu, SquareGradKernel, float, double>();
//   }
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/attr.h"
#include "framework/ir/op.h"
#include "framework/op/channels_last.h"
#include "framework/op/effects.h"
#include "framework/op/infer_context.h"
#include "framework/op/kernel.h"
#include "framework/op/kinds.h"

namespace penstock {

class OpRegistry;
class Program;

// The element types of a slot.
struct TypeRule {
  enum class Kind { kAny, kOneOf, kSameAs, kFromAttr };
  Kind kind = Kind::kAny;
  std::vector<DType> types;  // kOneOf; for an output with one entry: the type it gets
  std::string slot_or_attr;  // kSameAs: an input slot; kFromAttr: an INT attribute holding a DType number
};
TypeRule AnyType();
TypeRule Floats();    // f32, f64
TypeRule Integers();  // i32, i64
TypeRule Numbers();   // floats and integers
TypeRule Only(DType type);
TypeRule SameTypeAs(std::string slot);
TypeRule TypeFromAttr(std::string attr);

// Whether an output may name the variable of an input; the executor enforces it (E-op-alias). In any case
// both must have the same kind, element type and number of elements, because a variable is one piece of
// memory.
enum class Aliasing {
  kKnownSize,  // yes, if the output's size is known before the op runs
  kAnySize,    // yes, also if the op determines the size while it runs
  kNever,      // no: the kernel reads its inputs while it writes the output
};

struct SlotDef {
  std::string name;
  std::string doc;
  TypeRule type;
  bool optional = false;      // may be absent or empty
  bool repeated = false;      // takes any number of arguments
  bool intermediate = false;  // an output kept only for the gradient (Mask, XShape)
  KindSet kinds = KindSet::Of(VarKind::kTensor);
  Aliasing aliasing = Aliasing::kKnownSize;  // of an output
  std::string updates = {};  // of an optimizer's output: the only input whose variable it may name
  bool shape_only = false;   // of an input: the op uses the type and the LoD of the value, not its elements
};
// Modifiers, given after the type: .Input("Bias", "added to Out", SameTypeAs("X"), Optional())
struct SlotFlags {
  bool optional = false, repeated = false, intermediate = false;
  KindSet kinds = {};  // empty: dense tensors alone
  Aliasing aliasing = Aliasing::kKnownSize;
  bool shape_only = false;
};
constexpr SlotFlags Optional() { return {.optional = true}; }
constexpr SlotFlags Repeated() { return {.repeated = true}; }
constexpr SlotFlags Intermediate() { return {.intermediate = true}; }
template <typename... Kinds>
constexpr SlotFlags OfKind(Kinds... kinds) {
  return {.kinds = KindSet::Of(kinds...)};
}
constexpr SlotFlags TensorOrRows() { return OfKind(VarKind::kTensor, VarKind::kSelectedRows); }
constexpr SlotFlags OfAnyKind() { return {.kinds = KindSet::Any()}; }
constexpr SlotFlags Apart() { return {.aliasing = Aliasing::kNever}; }
constexpr SlotFlags InPlaceInAnySize() { return {.aliasing = Aliasing::kAnySize}; }
constexpr SlotFlags operator|(SlotFlags a, SlotFlags b) {
  return {a.optional || b.optional,
          a.repeated || b.repeated,
          a.intermediate || b.intermediate,
          a.kinds | b.kinds,
          a.aliasing == Aliasing::kKnownSize ? b.aliasing : a.aliasing,
          a.shape_only || b.shape_only};
}

// The rule for NaN that every op follows unless its declaration says otherwise (OpDef::Nan).
inline constexpr char kNanRule[] =
    "An element of a result that depends on an element of an input is NaN where that one is.";

// The values that an attribute may have.
struct AttrCheck {
  // Returns nullopt if the value is allowed, else the requirement ("at least 1"). Null: any value is allowed.
  std::function<std::optional<std::string>(const Attr&)> rule;
  std::vector<std::string> domain = {};  // all allowed values, for a few strings: tests try each
};
AttrCheck AtLeast(double bound);
AttrCheck AtMost(double bound);
AttrCheck OneOf(std::vector<std::string> values);
AttrCheck AnyValue();

struct AttrDef {
  std::string name;
  AttrKind kind;
  std::optional<Attr> default_value;  // absent: required
  std::string doc;
  AttrCheck check;
  // Written into the program only if the user sets it (Fluid's own optional attributes); a reader sees the
  // default.
  bool implicit = false;
};

// The gradient as data. The op `<type>_grad` reads the forward inputs in `reads`, the forward outputs in
// `reads_outputs`, and Out@GRAD for each forward output in `of` (default: all that are not intermediate). It
// writes In@GRAD for each forward input in `yields`.
struct GradSpec {
  std::vector<std::string> reads;          // forward inputs
  std::vector<std::string> reads_outputs;  // forward outputs
  std::vector<std::string> yields;         // forward inputs that get a gradient
  std::vector<std::string> of = {};        // forward outputs whose gradient is read
  std::string type = {};                   // default: forward type + "_grad"
  // Members of `yields` whose gradient may be selected rows.
  std::vector<std::string> sparse = {};
  // Members of `reads` and `reads_outputs` of which the gradient uses the type and the LoD, not the elements
  // (Fluid's no_need_buffer): the executor may use their memory for other values by then.
  std::vector<std::string> shapes = {};
  // Members of `yields` whose gradient must not share a variable with any input.
  std::vector<std::string> apart = {};
  bool copies_attrs = true;  // false: the op gets only the framework's attributes (as Fluid's mean_grad)
};
// The input of a GradMaker, which makes a gradient of several ops or of another op (the gradient of sum is
// scale): the forward op and, for each variable, the name of its gradient ("" if it is not needed).
struct GradRequest {
  const Op& forward;
  std::function<std::string(const std::string&)> grad_of;
  // For an op that declares GradOfBlock: the op's block, and the gradient block of the block that it runs.
  const Program* program = nullptr;
  int block = -1;
  int grad_block = -1;
};
using GradMaker = std::function<Result<std::vector<Op>>(const GradRequest&)>;

// How a state slot of an optimizer relates to its parameter.
enum class StateSlicing { kWithParam, kWhole };
struct StateDef {
  std::string slot;  // input slot
  std::string doc;
  StateSlicing slicing = StateSlicing::kWithParam;  // kWhole: shape [1], one copy for each slice
  std::string accumulator;  // part of the variable's name: param + "_" + accumulator + "_0"
  double initial = 0.0;     // fill value, unless `initial_attr` names the attribute that holds it
  std::string initial_attr = {};
  // Output slot; default: slot + "Out". "-": the op does not write the state (adamax's Beta1Pow).
  std::string output = {};
  std::string device = {};  // op_device of the op that makes the initial value; "": the parameter's device
  // After all updates, an op in name scope `advance_scope` multiplies the state by this attribute (adamax's
  // beta1).
  std::string advance_attr = {};
  std::string advance_scope = {};
};
struct OptimizerDef {
  std::string param_slot, grad_slot;       // the updated parameter is output param_slot + "Out"
  std::string rate_slot = "LearningRate";  // an op without an input of this name uses no learning rate
  bool elementwise = false;  // updating an element reads only that element: the op may run on any slice
  std::vector<StateDef> states;
};

// The result of an op that runs on a slice, some rows of a tensor instead of all of them.
enum class OnSlices {
  kByRows,      // the same rows of the result
  kAddsUp,      // partial results, whose sum over all slices is the result for the whole
  kNeedsWhole,  // no usable result
};
using SliceRule = std::function<OnSlices(const Op&)>;

// The arguments of slot `parts` are consecutive rows of the variable in slot `whole`, in order.
struct RowParts {
  std::string whole, parts;               // one is an input, the other an output
  std::function<bool(const Op&)> when{};  // null: always
};

// The types that the outputs of an op will have in the coming run, in the order of op.outputs(); empty: they
// are not known. The argument is the value of the op's source: of its first input, or, where an op that
// passes its source on writes that, of the first input of this op. It may wait where the op would.
using OutputPeek = std::function<Result<std::vector<TensorDesc>>(const Variable&)>;

class OpDef {
 public:
  explicit OpDef(std::string type) : type_(std::move(type)) {}

  // Declaration. Each call returns *this.
  OpDef& Doc(std::string summary, std::string_view doc);
  OpDef& Input(std::string name, std::string doc, TypeRule type, SlotFlags flags = {});
  OpDef& Output(std::string name, std::string doc, TypeRule type, SlotFlags flags = {});
  template <typename T>
  OpDef& Attr(std::string name, T default_value, std::string doc, AttrCheck check = AnyValue()) {
    return AddAttr(std::move(name), penstock::Attr(std::move(default_value)), std::move(doc),
                   std::move(check), false);
  }
  OpDef& Attr(std::string name, const char* default_value, std::string doc, AttrCheck check = AnyValue()) {
    return Attr(std::move(name), std::string(default_value), std::move(doc), std::move(check));
  }
  // Declares an attribute that Fluid writes only when it is set.
  template <typename T>
  OpDef& ImplicitAttr(std::string name, T default_value, std::string doc, AttrCheck check = AnyValue()) {
    return AddAttr(std::move(name), penstock::Attr(std::move(default_value)), std::move(doc),
                   std::move(check), true);
  }
  OpDef& RequiredAttr(std::string name, AttrKind kind, std::string doc, AttrCheck check = AnyValue());
  OpDef& InferShape(std::function<Status(InferContext&)> infer);
  // Names the slot whose element type chooses the kernel; default: the first input with an argument, else
  // the first output.
  OpDef& KernelTypeFrom(std::string slot);
  template <typename Device, template <typename, typename> class K, typename... Ts>
  OpDef& Kernel() {
    (AddKernel(Device::kKind, DTypeOfT<Ts>::kValue,
               [] { return std::unique_ptr<penstock::Kernel>(new K<Device, Ts>()); }),
     ...);
    return *this;
  }
  // One kernel for all element types.
  template <typename Device, typename K>
  OpDef& KernelForAnyType() {
    return AddKernel(Device::kKind, std::nullopt, [] { return std::unique_ptr<penstock::Kernel>(new K()); });
  }
  OpDef& Grad(GradSpec spec);
  OpDef& GradMadeBy(GradMaker maker);
  // The op's gradient runs the gradient of the block that this attribute names. That gradient block is made
  // first, and the maker (GradMadeBy) gets its index.
  OpDef& GradOfBlock(std::string attr);
  OpDef& NoGrad();  // the op has no gradient: backward stops here (accuracy, top_k's Indices)
  template <typename Device, template <typename, typename> class K, typename... Ts>
  OpDef& GradKernel() {
    GradDef().template Kernel<Device, K, Ts...>();
    return *this;
  }
  // Returns the gradient op that Grad generates. Use it to declare what differs from the default
  // (InferShape, KernelTypeFrom).
  OpDef& GradDef();
  OpDef& Optimizes(std::string param_slot, std::string grad_slot);
  // Declares that element i of every output depends only on element i of each input of the same shape (and
  // on inputs of one element), so the op may run on a row range. For an optimizer, call it after Optimizes;
  // it then describes the update.
  OpDef& Elementwise();
  // Declares that the kernel computes `output` as well in the memory of `input`, if both have as many
  // elements, whatever else the op computes. An elementwise op with one output needs no such declaration.
  OpDef& InPlace(std::string output, std::string input);
  // Declares how the op computes images that are stored channels last.
  OpDef& ChannelsLast(penstock::ChannelsLast how);
  // Declares the op's result on slices if Elementwise does not describe it. For example, an op that merges
  // duplicate rows is kByRows, and an op that sums all elements is kAddsUp.
  OpDef& WhenSliced(SliceRule rule);
  OpDef& State(std::string slot, std::string doc, StateSlicing slicing, std::string accumulator,
               double initial = 0.0, std::string initial_attr = "");
  OpDef& State(StateDef state);
  // Declares that values determine which inputs the op reads, so some inputs may be empty when it runs.
  OpDef& ReadsOnlySome();
  // Documents, in sentences, how the op and its gradient treat NaN if they do not follow kNanRule.
  OpDef& Nan(std::string what);
  // Declares an op without a kernel: programs with it can be made, read, checked and exchanged, but not run.
  // `remedy` gives the reason and the alternative; the executor reports it with E-kernel-missing.
  OpDef& NotBuilt(std::string remedy);
  // Declares that the types of the outputs, which the op supplies itself, can be asked for before a run. The
  // executor then plans the run for them.
  OpDef& PeekOutputs(OutputPeek peek);
  // Declares that the output stands for the source that the first input stands for.
  OpDef& PassesSourceOn();
  // Lets the executor make the parts views of the whole: a part's tensor then shares the memory of its rows.
  // The kernel copies only parts that are not views.
  OpDef& PartsAreRows(RowParts parts);
  // Adds to what the op reads or writes beyond its arguments. An op with effects is never removed; one that
  // affects more than random numbers keeps its place in the order of the program's ops.
  OpDef& Affects(Effects effects);

  // Queries.
  const std::string& type() const { return type_; }
  const std::string& summary() const { return summary_; }
  const std::string& doc() const { return doc_; }
  const std::vector<SlotDef>& inputs() const { return inputs_; }
  const std::vector<SlotDef>& outputs() const { return outputs_; }
  const std::vector<AttrDef>& attrs() const { return attrs_; }
  const SlotDef* FindInput(std::string_view name) const;
  const SlotDef* FindOutput(std::string_view name) const;
  const AttrDef* FindAttr(std::string_view name) const;
  Effects effects() const { return effects_; }
  const std::string& nan() const { return nan_; }              // "": kNanRule
  const std::string& not_built() const { return not_built_; }  // "": the op has kernels
  bool reads_only_some() const { return reads_only_some_; }
  const OutputPeek& output_peek() const { return output_peek_; }  // null: not declared
  bool passes_source_on() const { return passes_source_on_; }
  bool elementwise() const { return elementwise_; }
  bool computes_in_place(std::string_view output, std::string_view input) const;
  // Null: the op takes images in the plain layout only, unless it keeps their layout.
  const penstock::ChannelsLast* channels_last() const { return channels_last_ ? &*channels_last_ : nullptr; }
  // Whether the op, if all its arguments have one shape or one element, computes elements in any order.
  bool keeps_layout() const { return elementwise_ || grad_of_elementwise_; }
  // Null if the declaration has none, or if its condition excludes this op.
  const RowParts* row_parts(const Op& op) const;
  OnSlices on_slices(const Op& op) const;
  const std::optional<GradSpec>& grad() const { return grad_; }
  const GradMaker& grad_maker() const { return grad_maker_; }
  const std::string& grad_of_block() const { return grad_of_block_; }  // "": none
  bool no_grad() const { return no_grad_; }
  bool has_grad() const { return grad_.has_value() || grad_maker_ != nullptr; }
  const std::optional<OptimizerDef>& optimizer() const { return optimizer_; }
  bool has_kernel(DeviceKind device) const;
  bool has_infer_shape() const { return infer_ != nullptr; }

  // Checks slots, attribute kinds and bounds, and element types of inputs against this schema. Accepts the
  // framework's attributes (op_role...) and attributes unknown to the schema, which stay on the op.
  Status CheckOp(const Op& op) const;
  // Runs shape inference: checks the input element types, calls the function, then sets the outputs' types by
  // their rules.
  Status Infer(InferContext& c) const;
  // The kernel for a device and element type; a null factory if there is none. `type` comes from KernelType.
  KernelFactory FindKernel(DeviceKind device, DType type) const;
  // The element type that chooses the kernel, from the declarations of the arguments.
  DType KernelType(const InferContext& c) const;
  // Adds the schema's default for each attribute that the op lacks (as Fluid's OpDesc.check_attrs), except
  // implicit ones.
  void FillDefaults(Op& op) const;

 private:
  friend class OpRegistry;
  OpDef& AddAttr(std::string name, penstock::Attr value, std::string doc, AttrCheck check, bool implicit);
  OpDef& AddKernel(DeviceKind device, std::optional<DType> type, KernelFactory factory);
  void BuildGradDef();
  void PassLayoutsToGrad();
  void NoteUpdates();

  std::string type_, summary_, doc_, nan_, not_built_;
  std::vector<SlotDef> inputs_, outputs_;
  std::vector<AttrDef> attrs_;
  std::function<Status(InferContext&)> infer_;
  std::string kernel_type_slot_;
  std::map<std::pair<DeviceKind, std::optional<DType>>, KernelFactory> kernels_;
  std::optional<GradSpec> grad_;
  GradMaker grad_maker_;
  std::string grad_of_block_;
  bool no_grad_ = false;
  std::shared_ptr<OpDef> grad_def_;
  std::optional<OptimizerDef> optimizer_;
  Effects effects_;
  bool reads_only_some_ = false;
  OutputPeek output_peek_;
  bool passes_source_on_ = false;
  bool elementwise_ = false;
  bool grad_of_elementwise_ = false;
  std::vector<std::pair<std::string, std::string>> in_place_;  // output, input
  std::optional<penstock::ChannelsLast> channels_last_;
  std::optional<RowParts> row_parts_;
  SliceRule slice_rule_;  // null: follows from `elementwise_`
};

// Shape functions that most ops need.
std::function<Status(InferContext&)> SameShape(std::string in, std::string out);  // with LoD level
std::function<Status(InferContext&)> OutputsAsDeclared();                         // communication ops

}  // namespace penstock
