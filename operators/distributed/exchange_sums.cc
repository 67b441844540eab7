// exchange_sums: pservers exchange their partial sums of a norm before they update.
#include <string>
#include <vector>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Sends the values in X to each of `endpoints` and waits until all of them have sent theirs. Out[i] is the value
that server epmap[i] sent under that name, including the server's own value. A step has one such exchange,
after all gradients are merged and before any parameter is updated. The order of Out is the same on all
servers, so their sums over Out have the same bytes. Fluid's protocol does not have this exchange.)";

}  // namespace

void RegisterExchangeSums(OpRegistry& ops) {
  ops.Add("exchange_sums")
      .Doc("Tells all parameter servers what each has of a sum.", kDoc)
      .Input("X", "this server's values", Floats(), Optional() | Repeated())
      .Output("Out", "the values of all servers; shaped as declared", AnyType(), Repeated())
      .RequiredAttr("epmap", AttrKind::kStrings, "the server of each Out")
      .RequiredAttr("endpoints", AttrKind::kStrings, "all servers that give and take")
      .InferShape(OutputsAsDeclared())
      .Affects({Effect::kStep})
      .NoGrad()
      // The runtime of a server does it in the op's place (executor/pserver): it never waits inside a block.
      .NotBuilt(
          "a pserver exchanges sums by itself, between the merges and updates of listen_and_serv; no "
          "other program can");
}

}  // namespace penstock
