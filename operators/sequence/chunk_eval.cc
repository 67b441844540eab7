// chunk_eval: precision and recall of labelled chunks of sequences.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/sequence/token_sequences.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
A label is type * tags + tag; type num_chunk_types is outside every chunk. The tags of each chunk_scheme are

IOB    0 begins a chunk, 1 is inside a chunk
IOE    0 is inside a chunk, 1 ends a chunk
IOBES  0 begins a chunk, 1 is inside, 2 ends it, 3 is a chunk of one element
plain  no tags: adjacent elements of one type form a chunk

A chunk of Inference is correct if Label has a chunk of the same position and type. Chunks of the types in
excluded_chunk_types are not counted. Precision, Recall and F1-Score cover all sequences together, and are 0
where the denominator is 0. Sequences are given by LoD or, with SeqLength, are rows of padded matrices.)";

struct Scheme {
  const char* name;
  int tags, begin, inside, end, single;  // -1: the scheme has no such tag
};
constexpr Scheme kSchemes[] = {{"IOB", 2, 0, 1, -1, -1},
                               {"IOE", 2, -1, 0, 1, -1},
                               {"IOBES", 4, 0, 1, 2, 3},
                               {"plain", 1, -1, -1, -1, -1}};

struct Chunk {
  Dim begin, last, type;
  bool operator==(const Chunk&) const = default;
};

// Splits labels into chunks.
class ChunkFinder {
 public:
  void Prepare(const std::string& scheme, Dim types) {
    scheme_ = *std::ranges::find_if(kSchemes, [&](const Scheme& one) { return scheme == one.name; });
    types_ = types;
  }
  std::int64_t largest_label() const { return types_ * scheme_.tags; }
  // Every label is in [0, largest_label()].
  void Find(const std::int64_t* labels, Dim length, std::vector<Chunk>& chunks) const {
    chunks.clear();
    Place before{-1, types_};
    Dim begin = -1;  // where the open chunk begins
    for (Dim i = 0; i < length; ++i) {
      const Place now{labels[i] % scheme_.tags, labels[i] / scheme_.tags};
      if (begin >= 0 && Ends(before, now)) {
        chunks.push_back({begin, i - 1, before.type});
        begin = -1;
      }
      if (Begins(before, now)) begin = i;
      before = now;
    }
    if (begin >= 0) chunks.push_back({begin, length - 1, before.type});
  }

 private:
  struct Place {
    Dim tag, type;
  };
  bool Ends(const Place& before, const Place& now) const {
    if (before.type == types_) return false;
    if (now.type != before.type) return true;
    if (before.tag == scheme_.begin || before.tag == scheme_.inside)
      return now.tag == scheme_.begin || now.tag == scheme_.single;
    return before.tag == scheme_.end || before.tag == scheme_.single;
  }
  bool Begins(const Place& before, const Place& now) const {
    if (now.type == types_) return false;
    if (now.type != before.type || now.tag == scheme_.begin) return true;
    if (now.tag == scheme_.inside || now.tag == scheme_.end)
      return before.tag == scheme_.end || before.tag == scheme_.single;
    return now.tag == scheme_.single;
  }

  Scheme scheme_ = kSchemes[0];
  Dim types_ = 1;
};

Status InferChunkEval(InferContext& c) {
  const Shape &inference = c.ShapeOf("Inference"), &label = c.ShapeOf("Label");
  if (!Compatible(inference, label))
    return c.Error("shape of Inference (", inference, ") must be that of Label (", label, ")");
  for (const char* slot :
       {"Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks"})
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {1}));
  return OkStatus();
}

class ChunkEvalKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    finder_.Prepare(k.Attr<std::string>("chunk_scheme"), k.Attr<std::int32_t>("num_chunk_types"));
    excluded_ = k.Attr<std::vector<std::int32_t>>("excluded_chunk_types");
    k.Bind(precision_, recall_, f1_, inferred_, labelled_, correct_);
    PENSTOCK_RETURN_IF_ERROR(inference_.Prepare(k, "Inference", "SeqLength"));
    return label_.Prepare(k, "Label", "SeqLength");
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(inference_.Find(k));
    PENSTOCK_RETURN_IF_ERROR(label_.Find(k));
    if (inference_.count() != label_.count())
      return LodError("chunk_eval: Inference has ", inference_.count(), " sequences, Label has ",
                      label_.count());
    const std::int64_t* const inference = std::as_const(k[inference_.operand()]).Data<std::int64_t>();
    const std::int64_t* const label = std::as_const(k[label_.operand()]).Data<std::int64_t>();
    std::int64_t inferred = 0, labelled = 0, correct = 0;
    for (Dim s = 0; s < label_.count(); ++s) {
      const Dim length = label_.length(s);
      if (inference_.length(s) != length)
        return LodError("chunk_eval: sequence ", s, " of Inference has ", inference_.length(s),
                        " labels, that of Label has ", length);
      PENSTOCK_RETURN_IF_ERROR(Find("Inference", inference + inference_.begin(s), length, found_));
      PENSTOCK_RETURN_IF_ERROR(Find("Label", label + label_.begin(s), length, right_));
      inferred += static_cast<std::int64_t>(found_.size());
      labelled += static_cast<std::int64_t>(right_.size());
      correct += Common();
    }
    const auto ratio = [](float part, float whole) { return whole == 0 ? 0.0f : part / whole; };
    const auto count = [](std::int64_t n) { return static_cast<float>(n); };
    const float precision = ratio(count(correct), count(inferred));
    const float recall = ratio(count(correct), count(labelled));
    *k[precision_].Data<float>() = precision;
    *k[recall_].Data<float>() = recall;
    *k[f1_].Data<float>() = ratio(2 * precision * recall, precision + recall);
    *k[inferred_].Data<std::int64_t>() = inferred;
    *k[labelled_].Data<std::int64_t>() = labelled;
    *k[correct_].Data<std::int64_t>() = correct;
    return OkStatus();
  }

 private:
  // Lists the chunks that are counted.
  Status Find(const char* slot, const std::int64_t* labels, Dim length, std::vector<Chunk>& chunks) {
    for (Dim i = 0; i < length; ++i) {
      if (labels[i] < 0 || labels[i] > finder_.largest_label())
        return InvalidArgument("E-op-label", "chunk_eval: ", slot, " has label ", labels[i],
                               "; it must be in [0, ", finder_.largest_label(), "]");
    }
    finder_.Find(labels, length, chunks);
    std::erase_if(chunks, [this](const Chunk& chunk) {
      return std::ranges::find(excluded_, chunk.type) != excluded_.end();
    });
    return OkStatus();
  }
  // Returns the number of chunks that are in both lists, each of which is sorted.
  std::int64_t Common() const {
    std::int64_t common = 0;
    auto right = right_.begin();
    for (const Chunk& chunk : found_) {
      while (right != right_.end() && right->begin < chunk.begin) ++right;
      if (right != right_.end() && *right == chunk) ++common;
    }
    return common;
  }

  ChunkFinder finder_;
  std::vector<std::int32_t> excluded_;
  Out<"Precision"> precision_;
  Out<"Recall"> recall_;
  Out<"F1-Score"> f1_;
  Out<"NumInferChunks"> inferred_;
  Out<"NumLabelChunks"> labelled_;
  Out<"NumCorrectChunks"> correct_;
  TokenSequences inference_, label_;
  std::vector<Chunk> found_, right_;
};

}  // namespace

void RegisterChunkEval(OpRegistry& ops) {
  std::vector<std::string> schemes;
  for (const Scheme& scheme : kSchemes) schemes.emplace_back(scheme.name);
  ops.Add("chunk_eval")
      .Doc("Precision and recall of labelled chunks of sequences.", kDoc)
      .Input("Inference", "the predicted labels", Only(DType::kInt64))
      .Input("Label", "the true labels", Only(DType::kInt64))
      .Input("SeqLength", "the lengths of padded sequences", Only(DType::kInt64), Optional())
      .Output("Precision", "the fraction of predicted chunks that are correct", Only(DType::kFp32))
      .Output("Recall", "the fraction of true chunks that were predicted", Only(DType::kFp32))
      .Output("F1-Score", "the harmonic mean of precision and recall", Only(DType::kFp32))
      .Output("NumInferChunks", "the number of predicted chunks", Only(DType::kInt64))
      .Output("NumLabelChunks", "the number of true chunks", Only(DType::kInt64))
      .Output("NumCorrectChunks", "the number of correctly predicted chunks", Only(DType::kInt64))
      .RequiredAttr("num_chunk_types", AttrKind::kInt, "the number of chunk types", AtLeast(1))
      .Attr("chunk_scheme", "IOB", "the tagging scheme", OneOf(schemes))
      .Attr("excluded_chunk_types", std::vector<std::int32_t>(), "the types that are not counted")
      .InferShape(InferChunkEval)
      .KernelForAnyType<Cpu, ChunkEvalKernel>()
      .NoGrad();
}

}  // namespace penstock
