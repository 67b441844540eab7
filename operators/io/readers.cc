// create_py_reader, create_double_buffer_reader, create_custom_reader, read: batches of a user's reader as
// the variables of a program. A reader variable holds the number of its queue
// (framework/runtime/batch_queue.h) and what its batches are declared to be: for n tensors the int64s
//
//   queue number, n flags need_check_feed, n ranks, then the extents of one shape after the other
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/op/tensor_desc.h"
#include "framework/runtime/batch_queue.h"

namespace penstock {
namespace {

constexpr char kCreateDoc[] = R"(
Out reads the batches of a queue: each batch has one tensor per element of `ranks`. shape_concat holds the
shapes one after the other, ranks[i] extents each.)";

constexpr char kOfSeveralDevices[] =
    "of Fluid's readers for several devices; travels with the op, has no effect here";

constexpr char kDoubleBufferDoc[] = R"(
Out reads the batches of UnderlyingReader. Fluid prepares the next batch meanwhile; here the reader's own
thread does so before the batch enters the queue, so this op does nothing.)";

constexpr char kCustomDoc[] = R"(
Out reads the batches of UnderlyingReader after a block of the program has changed them.)";

constexpr char kReadDoc[] = R"(
Out[i] is tensor i of the reader's next batch, without a copy. The op waits for the batch. At the end of the
data it returns error E-read-end, which Python raises as EOFException. An error of the reader itself becomes
the error of the run.)";

// What a queue or reader variable holds when the program runs.
bool HoldsNumbers(const Tensor* tensor) {
  return tensor != nullptr && tensor->initialized() && tensor->dtype() == DType::kInt64 &&
         tensor->count() > 0;
}

// A variable that is declared as a queue or a reader holds numbers once the program runs, and says so to
// what reads it: `read` must know a run from a declaration.
Status InferReader(InferContext& c) {
  const char* from = c.HasInput("blocking_queue") ? "blocking_queue" : "UnderlyingReader";
  if (c.Input(from).kind != VarKind::kTensor) return OkStatus();
  c.SetKind("Out", VarKind::kTensor);
  c.SetDType("Out", DType::kInt64);
  return c.SetShape("Out", {kUnknownDim});
}

// Scripts declare the longest shape and read what a batch needs, so in a run only the number of extents is
// known before the batch is there.
Status InferRead(InferContext& c) {
  if (c.Input("Reader").kind != VarKind::kTensor) return OkStatus();
  for (int i = 0; i < c.OutputCount("Out"); ++i) {
    const TensorDesc& declared = c.Output("Out", i);
    if (!declared.has_type) continue;
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(
        "Out", i, Shape(std::vector<Dim>(static_cast<std::size_t>(declared.shape.rank()), kUnknownDim))));
  }
  return OkStatus();
}

// The number of the queue behind a reader variable, and the declarations of its batches.
class ReaderKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const Argument& queue = k.Input("blocking_queue");
    from_ = queue ? queue : k.Input("UnderlyingReader");
    k.Bind(to_);
    if (!queue) return OkStatus();
    for (const char* part : {"need_check_feed", "ranks", "shape_concat"}) {
      const auto numbers = k.Attr<std::vector<std::int32_t>>(part);
      declared_.insert(declared_.end(), numbers.begin(), numbers.end());
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const Tensor* from = k.Var(from_).If<Tensor>();
    if (!HoldsNumbers(from)) {
      return FailedPrecondition("E-reader-queue", from_.name, " is no queue of batches");
    }
    if (declared_.empty()) {
      k.Var(to_).As<Tensor>() = *from;
      return OkStatus();
    }
    Tensor to(DType::kInt64, {static_cast<Dim>(declared_.size()) + 1});
    std::copy(declared_.begin(), declared_.end(),
              std::copy_n(from->Data<std::int64_t>(), 1, to.Data<std::int64_t>()));
    k.Var(to_).As<Tensor>() = std::move(to);
    return OkStatus();
  }

 private:
  Out<"Out"> to_;
  NamedOperand from_;
  std::vector<std::int64_t> declared_;  // of a reader that is made of a queue
};

// The queue whose number the variable of a reader holds; null if there is none.
std::shared_ptr<BatchQueue> QueueOf(const Variable& reader) {
  const Tensor* numbers = reader.If<Tensor>();
  return HoldsNumbers(numbers) ? BatchQueue::Find(*numbers->Data<std::int64_t>()) : nullptr;
}

// Only a cancelled wait is an error here: any other becomes that of the op when it runs.
Result<std::vector<TensorDesc>> PeekBatch(const Variable& reader) {
  std::vector<TensorDesc> types;
  const std::shared_ptr<BatchQueue> queue = QueueOf(reader);
  if (queue == nullptr) return types;
  const Result<std::optional<Batch>> batch = queue->Peek();
  if (!batch.ok()) {
    if (batch.status().code() == StatusCode::kCancelled) return batch.status();
    return types;
  }
  if (!batch->has_value()) return types;
  for (const Tensor& tensor : **batch) types.push_back(DescOf(tensor));
  return types;
}

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
    const std::shared_ptr<BatchQueue> queue = QueueOf(k.Var(reader_));
    if (queue == nullptr) {
      return FailedPrecondition("E-reader-gone", "read: the reader behind ", reader_.name,
                                " does not exist in this process any more");
    }
    PENSTOCK_ASSIGN_OR_RETURN(std::optional<Batch> batch, queue->Pop());
    if (!batch.has_value()) return FailedPrecondition("E-read-end", "there is no next data");
    const Tensor& numbers = k[reader_];
    PENSTOCK_RETURN_IF_ERROR(Check(*batch, numbers.Span<std::int64_t>().subspan(1)));
    for (std::size_t i = 0; i < out_.size(); ++i) k.Var(out_[i]).As<Tensor>() = std::move((*batch)[i]);
    return OkStatus();
  }

 private:
  // `declared`: what the reader variable holds behind the number of the queue; perhaps nothing.
  Status Check(const Batch& batch, std::span<const std::int64_t> declared) const {
    if (batch.size() != out_.size()) {
      return InvalidArgument("E-read-count", "read: the reader gives ", batch.size(),
                             " tensors; the program reads ", out_.size());
    }
    for (std::size_t i = 0; i < out_.size(); ++i) {
      const Argument& out = out_[i];
      if (batch[i].dtype() == out.dtype) continue;
      return InvalidArgument("E-read-type", "read: the reader gives ", DTypeName(batch[i].dtype()), " for ",
                             out.name, ", which is declared ", DTypeName(out.dtype));
    }
    return CheckShapes(batch, declared);
  }

  Status CheckShapes(const Batch& batch, std::span<const std::int64_t> declared) const {
    const std::size_t n = out_.size();
    if (declared.size() < 2 * n) return OkStatus();
    std::span<const std::int64_t> extents = declared.subspan(2 * n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto rank = static_cast<std::size_t>(std::max<std::int64_t>(declared[n + i], 0));
      if (rank > extents.size()) return OkStatus();
      const std::span<const std::int64_t> shape = extents.first(rank);
      extents = extents.subspan(rank);
      if (declared[i] == 0) continue;
      const Shape expected(std::vector<Dim>(shape.begin(), shape.end()));
      if (Compatible(batch[i].shape(), expected)) continue;
      return InvalidArgument("E-read-type", "read: the reader gives ", DTypeName(batch[i].dtype()),
                             batch[i].shape(), " for ", out_[i].name, ", which is declared ",
                             DTypeName(out_[i].dtype), expected);
    }
    return OkStatus();
  }

  NamedOperand reader_;
  std::vector<Argument> out_;
};

// What is declared to be a reader or its queue holds, when the program runs, the number of the queue.
constexpr SlotFlags QueueSlot() { return OfKind(VarKind::kRaw, VarKind::kTensor); }
constexpr SlotFlags ReaderSlot() { return OfKind(VarKind::kReader, VarKind::kTensor); }

OpDef& FinishReader(OpDef& def) {
  return def.Output("Out", "the reader", AnyType(), ReaderSlot())
      .InferShape(InferReader)
      .PassesSourceOn()
      .Affects({Effect::kQueue})
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
      .RequiredAttr("need_check_feed", AttrKind::kInts, "whether the extents of each must be as declared")
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
      .InferShape(InferRead)
      .PeekOutputs(PeekBatch)
      .Affects({Effect::kQueue})
      .NoGrad()
      .KernelForAnyType<Cpu, ReadKernel>();
}

}  // namespace penstock
