// Multiplies the loss's gradient by this rank's share of all ranks' examples, so that the sum of all ranks'
// gradients is the gradient of the mean over all examples, whatever the sizes of the batches.
//
//   before  loss = mean(X=cost)
//           loss@GRAD = fill_constant() {value=1.0} @backward|loss
//   after   loss = mean(X=cost)
//           loss@GRAD = fill_constant() {value=1.0} @backward|loss
//           @RANK_SHARE@ = c_share_of_elements(X=cost, Live=@RANK_LIVE@) @backward
//           loss@GRAD = elementwise_mul(X=loss@GRAD, Y=@RANK_SHARE@) @backward
//
// Live is 1, or 0 if the rank has no more examples and repeats a batch that does not count. The counted
// elements are those over which the loss takes the mean. Each rank's own loss stays the mean of its own
// batch.
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/example_shares.h"

namespace penstock::passes {

Result<Program> ShareLossGradient(const Program& in, const PassContext&) {
  return MultiplyLossGradientByShare("share_loss_gradient", in, 1.0f);
}

}  // namespace penstock::passes
