#include "transpiler/passes/spell/gradient_sends.h"

#include "transpiler/plan/names.h"

namespace penstock::passes {

Status ForEachGradient(BlockEdit& main, const PassContext& context, std::string_view pass,
                       const std::function<void(const plan::ParamPlacement&, OpId)>& place) {
  main.SetVar(ControlVar(plan::ControlName("send_barrier")));
  const std::vector<int>& order = context.plan.send_order;
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const plan::ParamPlacement& param = context.plan.params[static_cast<std::size_t>(*at)];
    const std::optional<OpId> writer = main.LastWriter(param.grad);
    if (!writer) {
      return PassError(pass, "no op writes ", param.grad, ", the gradient planned for ", param.param);
    }
    place(param, *writer);
  }
  return OkStatus();
}

SendSpec SendOf(const plan::ParamPlacement& param, const PassContext& context, BlockEdit& main) {
  SendSpec send;
  send.addresses = context.plan.SendAddressesOf(param, context.self.index);
  send.trainer_id = SenderId(context);
  send.param = param.param;
  send.grad = param.grad;
  send.done = plan::ControlName(StrCat("send.", param.param));
  main.SetVar(ControlVar(send.done));
  return send;
}

}  // namespace penstock::passes
