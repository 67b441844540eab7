// feed, fetch: name the inputs and outputs of a saved program.
#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kFeedDoc[] = R"(
Out is input number `col` of the program. The op copies nothing: the executor binds Out to the fed value.)";

constexpr char kFetchDoc[] = R"(
X is output number `col` of the program. The op copies nothing: the executor reads X.)";

}  // namespace

void RegisterFeedFetch(OpRegistry& ops) {
  ops.Add("feed")
      .Doc("An input of the program.", kFeedDoc)
      .Input("X", "the variable that stands for all that is fed", AnyType(), OfKind(VarKind::kFeed))
      .Output("Out", "the input", AnyType(),
              OfKind(VarKind::kTensor, VarKind::kSelectedRows, VarKind::kTensorArray))
      .RequiredAttr("col", AttrKind::kInt, "its number", AtLeast(0))
      .InferShape(OutputsAsDeclared())
      .Affects({Effect::kHost})
      .NoGrad();
  ops.Add("fetch")
      .Doc("An output of the program.", kFetchDoc)
      .Input("X", "the output", AnyType(),
             OfKind(VarKind::kTensor, VarKind::kSelectedRows, VarKind::kTensorArray))
      .Output("Out", "the variable that stands for all that is fetched", AnyType(), OfKind(VarKind::kFetch))
      .RequiredAttr("col", AttrKind::kInt, "its number", AtLeast(0))
      .InferShape(OutputsAsDeclared())
      .Affects({Effect::kHost})
      .NoGrad();
}

}  // namespace penstock
