#include "operators/all_ops.h"

namespace penstock {

// Each stands in the file of its ops. In sorted order, so that two people rarely touch the same line; a test
// finds the one that is missing here.
void RegisterAccuracy(OpRegistry& ops);
void RegisterActivations(OpRegistry& ops);
void RegisterAdadelta(OpRegistry& ops);
void RegisterAdagrad(OpRegistry& ops);
void RegisterAdam(OpRegistry& ops);
void RegisterAdamax(OpRegistry& ops);
void RegisterAllreduce(OpRegistry& ops);
void RegisterAssign(OpRegistry& ops);
void RegisterBarriers(OpRegistry& ops);
void RegisterBatchNorm(OpRegistry& ops);
void RegisterCast(OpRegistry& ops);
void RegisterClip(OpRegistry& ops);
void RegisterCommunicators(OpRegistry& ops);
void RegisterCompare(OpRegistry& ops);
void RegisterConcatSplit(OpRegistry& ops);
void RegisterConditionalBlock(OpRegistry& ops);
void RegisterConv2d(OpRegistry& ops);
void RegisterCrossEntropy(OpRegistry& ops);
void RegisterDeleteVar(OpRegistry& ops);
void RegisterDgcMomentum(OpRegistry& ops);
void RegisterDpsgd(OpRegistry& ops);
void RegisterDropout(OpRegistry& ops);
void RegisterElementwise(OpRegistry& ops);
void RegisterExchangeSums(OpRegistry& ops);
void RegisterFeedFetch(OpRegistry& ops);
void RegisterFillConstant(OpRegistry& ops);
void RegisterFillConstantBatchSizeLike(OpRegistry& ops);
void RegisterFtrl(OpRegistry& ops);
void RegisterIncrement(OpRegistry& ops);
void RegisterLabelSmooth(OpRegistry& ops);
void RegisterLamb(OpRegistry& ops);
void RegisterLarsMomentum(OpRegistry& ops);
void RegisterLayerNorm(OpRegistry& ops);
void RegisterLeakyRelu(OpRegistry& ops);
void RegisterListenAndServ(OpRegistry& ops);
void RegisterLookupTable(OpRegistry& ops);
void RegisterMatmul(OpRegistry& ops);
void RegisterMean(OpRegistry& ops);
void RegisterMomentum(OpRegistry& ops);
void RegisterMul(OpRegistry& ops);
void RegisterPointwiseLosses(OpRegistry& ops);
void RegisterPool2d(OpRegistry& ops);
void RegisterPow(OpRegistry& ops);
void RegisterRandom(OpRegistry& ops);
void RegisterRecv(OpRegistry& ops);
void RegisterReduceOps(OpRegistry& ops);
void RegisterReshape2(OpRegistry& ops);
void RegisterRmsprop(OpRegistry& ops);
void RegisterSaveLoad(OpRegistry& ops);
void RegisterScale(OpRegistry& ops);
void RegisterSelectInput(OpRegistry& ops);
void RegisterSelectedRows(OpRegistry& ops);
void RegisterSend(OpRegistry& ops);
void RegisterSgd(OpRegistry& ops);
void RegisterSign(OpRegistry& ops);
void RegisterSoftmax(OpRegistry& ops);
void RegisterSoftmaxWithCrossEntropy(OpRegistry& ops);
void RegisterSqueeze2(OpRegistry& ops);
void RegisterStreamSync(OpRegistry& ops);
void RegisterSum(OpRegistry& ops);
void RegisterTables(OpRegistry& ops);
void RegisterTopK(OpRegistry& ops);
void RegisterTranspose2(OpRegistry& ops);

void RegisterAllOps(OpRegistry& ops) {
  RegisterAccuracy(ops);
  RegisterActivations(ops);
  RegisterAdadelta(ops);
  RegisterAdagrad(ops);
  RegisterAdam(ops);
  RegisterAdamax(ops);
  RegisterAllreduce(ops);
  RegisterAssign(ops);
  RegisterBarriers(ops);
  RegisterBatchNorm(ops);
  RegisterCast(ops);
  RegisterClip(ops);
  RegisterCommunicators(ops);
  RegisterCompare(ops);
  RegisterConcatSplit(ops);
  RegisterConditionalBlock(ops);
  RegisterConv2d(ops);
  RegisterCrossEntropy(ops);
  RegisterDeleteVar(ops);
  RegisterDgcMomentum(ops);
  RegisterDpsgd(ops);
  RegisterDropout(ops);
  RegisterElementwise(ops);
  RegisterExchangeSums(ops);
  RegisterFeedFetch(ops);
  RegisterFillConstant(ops);
  RegisterFillConstantBatchSizeLike(ops);
  RegisterFtrl(ops);
  RegisterIncrement(ops);
  RegisterLabelSmooth(ops);
  RegisterLamb(ops);
  RegisterLarsMomentum(ops);
  RegisterLayerNorm(ops);
  RegisterLeakyRelu(ops);
  RegisterListenAndServ(ops);
  RegisterLookupTable(ops);
  RegisterMatmul(ops);
  RegisterMean(ops);
  RegisterMomentum(ops);
  RegisterMul(ops);
  RegisterPointwiseLosses(ops);
  RegisterPool2d(ops);
  RegisterPow(ops);
  RegisterRandom(ops);
  RegisterRecv(ops);
  RegisterReduceOps(ops);
  RegisterReshape2(ops);
  RegisterRmsprop(ops);
  RegisterSaveLoad(ops);
  RegisterScale(ops);
  RegisterSelectInput(ops);
  RegisterSelectedRows(ops);
  RegisterSend(ops);
  RegisterSgd(ops);
  RegisterSign(ops);
  RegisterSoftmax(ops);
  RegisterSoftmaxWithCrossEntropy(ops);
  RegisterSqueeze2(ops);
  RegisterStreamSync(ops);
  RegisterSum(ops);
  RegisterTables(ops);
  RegisterTopK(ops);
  RegisterTranspose2(ops);
}

const OpRegistry& AllOps() {
  static const OpRegistry& all = []() -> const OpRegistry& {
    auto& ops = *new OpRegistry();
    RegisterAllOps(ops);
    const Status status = ops.Finish();
    PENSTOCK_CHECK(status.ok(), status.ToString());
    return ops;
  }();
  return all;
}

}  // namespace penstock
