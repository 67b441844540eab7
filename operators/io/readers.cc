// create_py_reader, create_double_buffer_reader, create_custom_reader, read: batches of a user's reader as
// the variables of a program. A reader variable holds the number of its queue
// (framework/runtime/batch_queue.h).
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/runtime/batch_queue.h"

namespace penstock {
namespace {

constexpr char kCreateDoc[] = R"(
Out reads what comes through the queue: batches of one tensor for each element of `ranks`. Its shapes stand
one after the other in shape_concat, ranks[i] extents each.)";

constexpr char kOfSeveralDevices[] =
    "of Fluid's readers for several devices; travels with the op, has no effect here";

constexpr char kDoubleBufferDoc[] = R"(
Out reads what UnderlyingReader reads. Fluid prepares the next batch meanwhile; here the reader's own thread
has done that before the batch enters the queue, so nothing is left to do.)";

constexpr char kCustomDoc[] = R"(
Out reads what UnderlyingReader reads, after a block of the program has changed it.)";

constexpr char kReadDoc[] = R"(
Out[i] is the i-th tensor of the reader's next batch, without a copy. Waits for it. At the end of the data:
the error E-read-end, which Python shows as EOFException. An error of the reader itself is the run's.)";

// The number of the queue behind a reader variable.
class ReaderKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const Operand& queue = k.Input("blocking_queue");
    from_ = queue ? queue : k.Input("UnderlyingReader");
    to_ = k.Output("Out");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const Tensor* number = k.Var(from_).If<Tensor>();
    if (number == nullptr || !number->initialized() || number->dtype() != DType::kInt64) {
      return FailedPrecondition("E-reader-queue", from_.name, " is no queue of batches");
    }
    k.Var(to_).As<Tensor>() = *number;
    return OkStatus();
  }

 private:
  Operand from_, to_;
};

class ReadKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    if (!k.Attr<bool>("throw_eof_exp")) {
      return Unimplemented("E-op-unimplemented", "read: attribute throw_eof_exp must be true");
    }
    reader_ = k.Input("Reader");
    out_.assign(k.Outputs("Out").begin(), k.Outputs("Out").end());
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const Tensor* number = k.Var(reader_).If<Tensor>();
    std::shared_ptr<BatchQueue> queue;
    if (number != nullptr && number->initialized() && number->dtype() == DType::kInt64 &&
        number->count() == 1) {
      queue = BatchQueue::Find(*number->Data<std::int64_t>());
    }
    if (queue == nullptr) {
      return FailedPrecondition("E-reader-gone", "read: the reader behind ", reader_.name,
                                " does not exist in this process any more");
    }
    PENSTOCK_ASSIGN_OR_RETURN(std::optional<Batch> batch, queue->Pop());
    if (!batch.has_value()) return FailedPrecondition("E-read-end", "there is no next data");
    PENSTOCK_RETURN_IF_ERROR(Check(*batch));
    for (std::size_t i = 0; i < out_.size(); ++i) k.Var(out_[i]).As<Tensor>() = std::move((*batch)[i]);
    return OkStatus();
  }

 private:
  Status Check(const Batch& batch) const {
    if (batch.size() != out_.size()) {
      return InvalidArgument("E-read-count", "read: the reader gives ", batch.size(),
                             " tensors; the program reads ", out_.size());
    }
    for (std::size_t i = 0; i < out_.size(); ++i) {
      const Operand& out = out_[i];
      if (batch[i].dtype() != out.dtype || !Compatible(batch[i].shape(), out.shape)) {
        return InvalidArgument("E-read-type", "read: the reader gives ", DTypeName(batch[i].dtype()),
                               batch[i].shape(), " for ", out.name, ", which is declared ",
                               DTypeName(out.dtype), out.shape);
      }
    }
    return OkStatus();
  }

  Operand reader_;
  std::vector<Operand> out_;
};

// What is declared to be a reader or its queue holds, when the program runs, the number of the queue.
constexpr SlotFlags QueueSlot() { return OfKind(VarKind::kRaw, VarKind::kTensor); }
constexpr SlotFlags ReaderSlot() { return OfKind(VarKind::kReader, VarKind::kTensor); }

OpDef& FinishReader(OpDef& def) {
  return def.Output("Out", "the reader", AnyType(), ReaderSlot())
      .InferShape(OutputsAsDeclared())
      .SideEffect()
      .NoGrad();
}

}  // namespace

void RegisterReaders(OpRegistry& ops) {
  FinishReader(ops.Add("create_py_reader")
                   .Doc("A reader of batches that Python makes.", kCreateDoc)
                   .Input("blocking_queue", "the queue's number", AnyType(), QueueSlot()))
      .RequiredAttr("shape_concat", AttrKind::kInts, "the extents of all shapes")
      .RequiredAttr("lod_levels", AttrKind::kInts, "of each tensor")
      .RequiredAttr("dtypes", AttrKind::kInts, "of each tensor")
      .RequiredAttr("need_check_feed", AttrKind::kInts,
                    "whether Fluid compares each with its declaration; we always do")
      .RequiredAttr("ranks", AttrKind::kInts, "of each tensor")
      .Attr("use_data_config", true, kOfSeveralDevices)
      .Attr("device_index", 0, kOfSeveralDevices)
      .Attr("device_count", 1, kOfSeveralDevices)
      .KernelForAnyType<Cpu, ReaderKernel>();
  FinishReader(ops.Add("create_double_buffer_reader")
                   .Doc("A reader that prepares one batch ahead.", kDoubleBufferDoc)
                   .Input("UnderlyingReader", "the reader below", AnyType(), ReaderSlot()))
      .Attr("place", std::string("AUTO"), "where Fluid keeps the next batch; not used")
      .KernelForAnyType<Cpu, ReaderKernel>();
  FinishReader(ops.Add("create_custom_reader")
                   .Doc("A reader whose batches a block changes.", kCustomDoc)
                   .Input("UnderlyingReader", "the reader below", AnyType(), ReaderSlot()))
      .RequiredAttr("sub_block", AttrKind::kBlock, "the block")
      .RequiredAttr("source_var_names", AttrKind::kStrings, "what the block reads")
      .RequiredAttr("sink_var_names", AttrKind::kStrings, "what the block makes")
      .NotBuilt("no layer of Fluid 1.8 makes one; change the batches before they are fed to a py_reader");
  ops.Add("read")
      .Doc("The next batch of a reader.", kReadDoc)
      .Input("Reader", "the reader", AnyType(), ReaderSlot())
      .Output("Out", "the batch", AnyType(), Repeated())
      .Attr("throw_eof_exp", true, "must be true: the end of the data is an error")
      .Attr("infer_out", true, "whether Fluid declares Out by the reader; they are declared here")
      .Attr("drop_last", true, "of Fluid's parallel executor; not used")
      .InferShape(OutputsAsDeclared())
      .SideEffect()
      .NoGrad()
      .KernelForAnyType<Cpu, ReadKernel>();
}

}  // namespace penstock
