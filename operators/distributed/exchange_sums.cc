// exchange_sums: what each parameter server has of a norm, told to all of them before they update.
#include <string>
#include <vector>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Gives each of `endpoints` the values in X and waits until all of them have given theirs: Out[i] is the value
that server epmap[i] gave under that name, its own among them. A step has one such exchange, after all
gradients were merged and before anything is updated. The order of Out is the same on all servers, so that
what they add up of it has the same bytes everywhere. Not on Fluid's wire.)";

}  // namespace

void RegisterExchangeSums(OpRegistry& ops) {
  ops.Add("exchange_sums")
      .Doc("Tells all parameter servers what each has of a sum.", kDoc)
      .Input("X", "this server's values", Floats(), Optional() | Repeated())
      .Output("Out", "the values of all servers; shaped as declared", AnyType(), Repeated())
      .RequiredAttr("epmap", AttrKind::kStrings, "the server of each Out")
      .RequiredAttr("endpoints", AttrKind::kStrings, "all servers that give and take")
      .InferShape(OutputsAsDeclared())
      .SideEffect()
      .NoGrad()
      // The runtime of a server does it in the op's place (executor/pserver): it never waits inside a block.
      .NotBuilt(
          "a pserver exchanges sums by itself, between the merges and updates of listen_and_serv; no "
          "other program can");
}

}  // namespace penstock
