// Multiplies the loss's gradient by this trainer's share of all trainers' examples, times the number of
// trainers. The mean of all trainers' gradients, which pservers or a later pass take, is then the gradient of
// the mean over all examples.
//
//   plan    {3 trainers}
//   before  loss = mean(X=cost)
//           loss@GRAD = fill_constant() {value=1.0} @backward|loss
//   after   loss = mean(X=cost)
//           loss@GRAD = fill_constant() {value=1.0} @backward|loss
//           @RANK_SHARE@ = c_share_of_elements(X=cost, Live=@RANK_LIVE@) {scale=3.0} @backward
//           loss@GRAD = elementwise_mul(X=loss@GRAD, Y=@RANK_SHARE@) @backward
//
// If all trainers have equally many examples, the factor is 1.
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/example_shares.h"

namespace penstock::passes {

Result<Program> WeighLossGradient(const Program& in, const PassContext& context) {
  return MultiplyLossGradientByShare("weigh_loss_gradient", in, static_cast<float>(context.plan.trainers));
}

}  // namespace penstock::passes
