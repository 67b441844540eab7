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
      // The server's programs are made, planned and proved; a server that runs them needs calls between
      // servers.
      .NotBuilt("pservers do not exchange sums; transpile with clip=\"local\"");
}

}  // namespace penstock
